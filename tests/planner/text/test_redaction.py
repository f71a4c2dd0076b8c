"""Redaction of secrets in text; code that only mentions secrets is unchanged."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.text.redaction import redact, redact_data, secret_values

ALNUM = "16C7e42F292c6912E7710c838347Ae178B4a"
LONG = "Ab3" * 30

SHAPES = {
    "aws access key id": "AKIA" + "IOSFODNN7EXAMPLE",
    "github token": "ghp_" + ALNUM,
    "gitlab token": "glpat-" + "x1y2z3A4B5C6D7E8F9G0",
    "slack token": "xoxb-" + "123456789012-1234567890123-abcdefghijklmnop",
    "stripe key": "sk_" + "live_" + ALNUM[:24],
    "anthropic key": "sk-" + "ant-api03-" + LONG,
    "openai key": "sk-" + "proj-" + LONG,
    "npm token": "npm_" + ALNUM,
    "pypi token": "pypi-" + "AgEIcHlwaS5vcmc" + LONG,
    "google key": "AIza" + ALNUM[:35],
    "google token": "ya29." + LONG,
    "hugging face token": "hf_" + ALNUM,
    "sendgrid key": "SG." + ALNUM[:22] + "." + ALNUM,
    "digitalocean token": "dop_v1_" + "ab12" * 16,
    "docker token": "dckr_pat_" + ALNUM,
    "vault token": "hvs." + LONG,
    "databricks token": "dapi" + "ab12" * 8,
    "grafana token": "glsa_" + ALNUM + "_ab12",
    "linear key": "lin_api_" + ALNUM,
    "telegram token": "123456789:AA" + ALNUM[:33],
    "age key": "AGE-SECRET-KEY-1" + "QX7" * 20,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0",
}


VARIANTS = [
    ("github token", "github_pat_" + ALNUM),
    ("github token", "ghp_" + "a1" * 5_000),
    ("stripe key", "whsec_" + ALNUM),
    ("openai key", "sk-" + ALNUM + ALNUM[:12]),
    ("slack token", "xapp-" + "1-A0123456789-" + ALNUM),
]


@pytest.mark.parametrize(("kind", "secret"), [*SHAPES.items(), *VARIANTS], ids=lambda text: text[:20])
def test_a_secret_of_a_known_format_is_replaced_by_its_kind(kind: str, secret: str) -> None:
    for around in ("{}", "key '{}' is wrong", "https://x.org/?k={}&y=1", "E   {}\n"):
        assert redact(around.format(secret)) == around.format(f"[redacted: {kind}]")


LINES = ["MIIEpAIBAAKCAQEA" + "x" * 48] * 3
KEY = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *LINES, "-----END RSA PRIVATE KEY-----"])
CERTIFICATE = KEY.replace("RSA PRIVATE KEY", "CERTIFICATE")
ODD_KEY = "-----BEGIN PRIVATE KEY-----\nnot base64\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"a\n{KEY}\nb", "a\n[redacted: private key]\nb", id="whole"),
        pytest.param(f"{KEY}\n{KEY}", "[redacted: private key]\n[redacted: private key]", id="two"),
        pytest.param(KEY.replace("\n", "\\n"), "[redacted: private key]", id="escaped"),
        pytest.param(KEY.replace("RSA ", "OPENSSH "), "[redacted: private key]", id="openssh"),
        pytest.param(
            KEY.replace("-----\nMII", "-----\nA: 4\n\nMII"), "[redacted: private key]", id="headers"
        ),
        pytest.param(KEY[:150] + "\nand on", "[redacted: private key]\nand on", id="cut at its end"),
        pytest.param(
            "it\n" + KEY[100:] + "\nb", "it\n[redacted: private key]\nb", id="cut at its beginning"
        ),
        pytest.param("-----BEGIN PRIVATE KEY-----", "[redacted: private key]", id="header alone"),
        pytest.param(f"{ODD_KEY}{ODD_KEY[5:]}", "[redacted: private key]" * 2, id="adjoining"),
        pytest.param(CERTIFICATE, CERTIFICATE, id="public certificate"),
    ],
)
def test_a_private_key_block_is_redacted_even_if_truncated(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdef", "Authorization: Bearer [redacted: authorization]"),
        (
            "authorization: Basic dXNlcjpwYXNz\nHost: x",
            "authorization: Basic [redacted: authorization]\nHost: x",
        ),
        ("curl -H 'Authorization: abc123def' x", "curl -H 'Authorization: [redacted: authorization]' x"),
        ('h["Authorization"] = "opaque-value"', 'h["Authorization"] = "[redacted: authorization]"'),
        ("sent Bearer abcdefghijklmnop0123 to x", "sent Bearer [redacted: bearer token] to x"),
        ("Set-Cookie: session=abcd1234; Path=/", "Set-Cookie: [redacted: cookie]"),
        ("X-Api-Key: 1234abcd", "X-Api-Key: [redacted: api key]"),
        ("postgres://me:pa55@host/db", "postgres://me:[redacted: password]@host/db"),
        ("postgres://me:p@ss@word@host:1/db", "postgres://me:[redacted: password]@host:1/db"),
        ("curl -s -u me:hunter2 https://x.org", "curl -s -u me:[redacted: password] https://x.org"),
        ("redis://:hunter2@localhost", "redis://:[redacted: password]@localhost"),
        ("https://0123456789abcdef0123456789@x.org/y", "https://[redacted: token]@x.org/y"),
        (
            "Server=x;User ID=u;Password=p@ss w;Encrypt=True",
            "Server=x;User ID=u;Password=[redacted: password];Encrypt=True",
        ),
        ("https://x.org/?sv=1&sig=abc%2Fdef1", "https://x.org/?sv=1&sig=[redacted: secret]"),
        ("machine h login me password s3cr3t", "machine h login me password [redacted: password]"),
        (
            f"https://hooks.slack.com/services/T0000/B0000/{'X' * 24} said no",
            "https://hooks.slack.com/[redacted: slack webhook] said no",
        ),
        ("pwd=1", "pwd=[redacted: password]"),
        ("password: correcthorse", "password: [redacted: password]"),
        ("--token x", "--token [redacted: token]"),
        (r'password = "hun\"ter2" + x', 'password = "[redacted: password]" + x'),
        ('password = "never closed 1', 'password = "[redacted: password]'),
    ],
)
def test_only_the_secret_of_a_header_url_connection_string_or_assignment_is_redacted(
    text: str, expected: str
) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            "PASSWORD={}",
            'DB_PASSWORD_PROD="{}"',
            "password: {}",
            "  api_key: {}  # of the shop",
            "token2={}",
        ),
        *("apiKey: '{}'", '"password": "{}",', "password = {}", 'password = "{}"', "pwd := '{}'"),
        *('connect(password="{}", user="x")', 'password: str = "{}"', 'os.environ["API_TOKEN"] = "{}"'),
        *('secret = b"{}"', "'password' => '{}'", '\\"client_secret\\": \\"{}\\"'),
        *("--token {}", "--db-password '{}'", '["--api-key", "{}"]'),
    ],
)
def test_a_literal_assigned_to_a_secret_name_is_redacted(text: str) -> None:
    before, _, after = text.format("\0").partition("\0")
    for secret in ("hunter2", "s3cr3t-value", "wJalrXUtnFEMIK7MDENG/bPx9"):
        shown = redact(text.format(secret))
        assert secret not in shown
        assert shown.startswith(f"{before}[redacted: ")
        assert shown.endswith(after)


ORDINARY = """\
commit 4237bcea260702abcdef0123456789abcdef0123
tests/test_token.py::test_token[api_key-1]
tests/test_auth.py::TestSecret::test_password[password=]
sha256:ab8c0cf3a583cd378037b58d2107ff20c3fd7b256fd92aecf432bd8fdb244bc2
"sha256": "ab8c0cf3a583cd378037b58d2107ff20c3fd7b256fd92aecf432bd8fdb244bc2"
password = None
password: str
def login(user: str, password: str | None = None) -> None:
token = parser.next_token()
token = tokens[0]
token = "NUMBER"
while token := next(it):
expected token: NAME
api_key=os.environ["X"]
secret = secrets.token_hex(16)
self.password = password
password=settings.password,
login(user, password=pw)
tokens_used: null
token_count = 5
token: 1200
password = getpass("Password: ")
input("Password: ") + "abc"
access_key: str = ""
api_key: ""
Invalid password: must contain 8 characters
parser.add_argument("--token", help="the token")
usage: x [--token TOKEN]
x --token $TOKEN
curl -u "$USER:$PASS" https://x.org
docker run -u 1000:1000 x
headers["Authorization"] = f"Bearer {token}"
headers = {"Authorization": token}
Authorization: "the header is 1 of 3"
headers["Authorization"] = build_header2(token)
a Bearer of good news
f"postgres://{user}:{password}@{host}/db"
DATABASE_URL=postgres://${USER}:${PASSWORD}@h/db
password=$PASSWORD
password: ${{ secrets.X }}
password = f"{prefix}-{name}"
password: '****'
password: "<your password>"
password: ***
PWD=/home/me/project
primary_key: id
api_key: 12
password = !!
http://localhost:8000/@scope
assert token == 'abc123def'
task-based-risk-management-of-things
-----BEGIN PUBLIC KEY-----
""".splitlines()


def test_ordinary_code_and_ids_are_not_redacted() -> None:
    for text in (*ORDINARY, *(f"    {line}\n" for line in ORDINARY), "\n".join(ORDINARY)):
        assert redact(text) == text


HOSTILE = [
    *("password", "password=", "password='\\", 'token="', "password: a ", "password: str ", "a" * 10),
    *("A" * 64 + "\n", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----\n"),
    *("-----BEGIN PRIVATE KEY-----" + "A" * 20, "://a:", "://:@", "://a:b", "--a-", "--token-a_", "-a" * 8),
    *("eyJ-", "eyJaaaaaa.", "eyJaaaaaa.eyJ", "SG.", "sk-", "xoxb-", "AKIA", "1:AA", "Authorization: "),
    *("authorization=bearer ", "bearer ", "bearer a", "cookie: a", "login a password ", "curl -u a:"),
    *("curl a ", "secret_", ";password=", "\\", "'"),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_redaction_takes_linear_time_on_hostile_text(piece: str) -> None:
    """The text takes a fraction of a second; superlinear time would take many seconds."""
    text = piece * (50_000 // len(piece))
    started = time.process_time()
    redact(text)
    assert time.process_time() - started < 1


@given(
    st.lists(
        st.sampled_from([*HOSTILE, *ORDINARY, *SHAPES.values(), "\n", " ", '"', "hunter2", "[redacted: "])
    )
)
def test_redaction_is_idempotent(pieces: list[str]) -> None:
    once = redact(" ".join(pieces))
    assert redact(once) == once


def test_only_generated_values_of_environment_variables_named_like_secrets_are_secrets() -> None:
    variables = {
        "API_KEY": "a1b2c3d4e5",
        "DB_PASSWORD": "postgres",
        "PIN_PASSWORD": "1234",
        "SSH_KEY": "/home/me/key1",
        "AUTH_TOKEN": "xa1b2c3d4e5",
        "EDITOR": "vim-9.1.0016",
        "PWD": "/work/a1b2c3",
    }
    assert secret_values(variables) == ("xa1b2c3d4e5", "a1b2c3d4e5")


def test_secrets_in_data_are_redacted_except_under_identifiers() -> None:
    data = {"nodeid": "t.py::t[zq81nnvb]", "texts": ["by zq81nnvb", "PASSWORD=x1"], "number": 1}
    assert redact_data(data, ["zq81nnvb"], {"nodeid"}) == {
        "nodeid": "t.py::t[zq81nnvb]",
        "texts": ["by [redacted: secret]", "PASSWORD=[redacted: password]"],
        "number": 1,
    }
    assert redact_data(clean := ["nothing"], [], ()) is clean
