#!/bin/sh
# Carries out a plan: driver.sh PLAN AGENT [WORD ...]. The last word that the agent is given is a todo.
plan=$1; shift
tell() {
    printf '{"at":"%s",%s}\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" |
        planner step "$plan" --log run.jsonl --plan-out newest.yaml --allow-unproved >>answers
}
: >answers
if [ -s run.jsonl ]; then tell '"event":"run_resumed"'; else tell '"event":"run_started"'; fi
while IFS= read -r line; do # what is told meanwhile is answered at the end of the same file
    case $line in
    '{"action":"implement"'*)
        todo=${line#*\"todo_id\":\"} todo=${todo%%\"*}
        if "$@" "$todo" </dev/null; then done=true; else done=false; fi
        tell '"event":"work_finished","todo_id":"'"$todo"'","success":'$done ;;
    '{"action":"verify"'*)
        todos=${line#*\"todo_ids\":[} seq=${line#*\"seq\":} seq=${seq%%,*}
        for todo in $(printf %s "${todos%%]*}" | tr '",' '  '); do
            if pytest -q --planverify "newest.yaml::$todo" >&2; then green=true; else green=false; fi
            found='{"todo_id":"'$todo'","success":'$green',"tests_passed":'$green'}'
            tell '"event":"verified","answers":'"$seq"',"outcome":'"$found"
        done ;;
    *) printf '%s\n' "$line" ;;
    esac
done <answers
