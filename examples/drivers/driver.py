"""Carries out a plan: driver.py PLAN AGENT [WORD ...]. The last word that the agent is given is a todo."""

import datetime
import json
import pathlib
import subprocess
import sys

plan, *agent = sys.argv[1:]
events = [{"event": "run_resumed" if pathlib.Path("run.jsonl").exists() else "run_started"}]
step = ["planner", "step", plan, "--log", "run.jsonl", "--plan-out", "newest.yaml"]
engine = subprocess.Popen(step, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
while events:
    now = datetime.datetime.now(datetime.UTC).isoformat()
    print(json.dumps({"at": now, **events.pop(0)}), file=engine.stdin, flush=True)
    for action in map(json.loads, engine.stdout):
        if "action" not in action:  # the state, or why the event was refused, ends the answer
            print(json.dumps(action), flush=True)
            break
        if action["action"] == "implement":
            todo = action["todo_id"]
            done = subprocess.run([*agent, todo], stdin=subprocess.DEVNULL).returncode == 0
            events.append({"event": "work_finished", "todo_id": todo, "success": done})
        elif action["action"] == "verify":
            for todo in action["todo_ids"]:
                subprocess.run(["pytest", "-q", "--planverify", f"newest.yaml::{todo}"], stdout=sys.stderr)
                found = json.loads(pathlib.Path(".planverify/outcomes.json").read_text())["outcomes"]
                told = {"event": "verified", "answers": action["seq"]}
                events += [told | {"outcome": each} for each in found if each["todo_id"] == todo]
        else:  # a person is asked, or told something
            print(json.dumps(action), flush=True)
