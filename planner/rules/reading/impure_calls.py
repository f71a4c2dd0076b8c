"""Tables of the calls that bring chance, the clock or the network into a test, and what keeps them out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def _each(kind: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), kind)


ALWAYS: Mapping[str, str] = {
    **_each(
        "random",
        "secrets.token_hex secrets.token_bytes secrets.token_urlsafe secrets.choice secrets.randbelow "
        "secrets.randbits secrets.SystemRandom random.SystemRandom uuid.uuid1 uuid.uuid4 os.urandom "
        "os.getrandom",
    ),
    **_each(
        "clock",
        "time.time time.time_ns datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today "
        "datetime.date.today pandas.Timestamp.now pandas.Timestamp.today pandas.Timestamp.utcnow "
        "arrow.now arrow.utcnow pendulum.now pendulum.today django.utils.timezone.now",
    ),
    **_each(
        "network",
        "urllib.request.urlopen urllib.request.urlretrieve urllib.request.build_opener "
        "urllib.request.OpenerDirector http.client.HTTPConnection http.client.HTTPSConnection "
        "socket.create_connection socket.getaddrinfo socket.gethostbyname ftplib.FTP ftplib.FTP_TLS "
        "smtplib.SMTP smtplib.SMTP_SSL imaplib.IMAP4 imaplib.IMAP4_SSL poplib.POP3 "
        "xmlrpc.client.ServerProxy "
        "aiohttp.ClientSession aiohttp.request urllib3.PoolManager urllib3.request websockets.connect "
        "websocket.create_connection paramiko.SSHClient boto3.client boto3.resource boto3.Session "
        "yfinance.download yfinance.Ticker pandas_datareader.data.DataReader ccxt.binance",
    ),
}
"""Calls that are never repeatable, by their full names."""

BARE: Mapping[str, tuple[str, int]] = {
    "time.localtime": ("clock", 0),
    "time.gmtime": ("clock", 0),
    "time.ctime": ("clock", 0),
    "time.asctime": ("clock", 0),
    "time.strftime": ("clock", 1),
}
"""Calls that read the clock when they are given no more than so many arguments."""

UNSEEDED = frozenset(
    {
        "random.Random",
        "numpy.random.default_rng",
        "numpy.random.RandomState",
        "numpy.random.PCG64",
        "numpy.random.MT19937",
        "numpy.random.Philox",
        "numpy.random.SFC64",
        "numpy.random.SeedSequence",
        "numpy.random.seed",
        "random.seed",
    }
)
"""Generators, and their seeding, that take what the system gives where they are given no seed."""

_MODULE_FUNCTIONS = frozenset(
    [
        "random",
        "randint",
        "randrange",
        "choice",
        "choices",
        "shuffle",
        "sample",
        "uniform",
        "gauss",
        "normalvariate",
        "lognormvariate",
        "triangular",
        "betavariate",
        "expovariate",
        "gammavariate",
        "vonmisesvariate",
        "paretovariate",
        "weibullvariate",
        "getrandbits",
        "randbytes",
        "binomialvariate",
    ]
)
_NUMPY_FUNCTIONS = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "random",
        "random_sample",
        "ranf",
        "sample",
        "random_integers",
        "choice",
        "bytes",
        "shuffle",
        "permutation",
        "uniform",
        "normal",
        "standard_normal",
        "beta",
        "binomial",
        "chisquare",
        "exponential",
        "gamma",
        "geometric",
        "gumbel",
        "laplace",
        "logistic",
        "lognormal",
        "multinomial",
        "multivariate_normal",
        "poisson",
        "power",
        "rayleigh",
        "triangular",
        "weibull",
        "standard_t",
    ]
)
_TORCH_FUNCTIONS = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "normal",
        "bernoulli",
        "multinomial",
    ]
)
SEEDED_STATE: Mapping[str, tuple[str, frozenset[str]]] = {
    "random.": ("random", _MODULE_FUNCTIONS),
    "numpy.random.": ("numpy", _NUMPY_FUNCTIONS),
    "torch.": ("torch", _TORCH_FUNCTIONS),
    "faker.": ("faker", frozenset({"Faker"})),
    "hypothesis.": ("hypothesis", frozenset({"given"})),
}
"""By a module, the family of its hidden generator and the functions that draw from it."""

SEEDS: Mapping[str, str] = {
    "random.seed": "random",
    "random.setstate": "random",
    "numpy.random.seed": "numpy",
    "numpy.random.set_state": "numpy",
    "torch.manual_seed": "torch",
    "faker.Faker.seed": "faker",
    "Faker.seed": "faker",
    "hypothesis.seed": "hypothesis",
    "hypothesis.reproduce_failure": "hypothesis",
}
"""What seeds which family, when it is given something."""

CLIENTS = frozenset(
    f"{module}.{function}"
    for module in ("requests", "httpx")
    for function in (
        *("get", "post", "put", "delete", "patch", "head", "options", "request"),
        *("Session", "session", "Client", "AsyncClient", "stream"),
    )
)
"""Calls of the usual clients, which open connections unless they are given a transport."""

GUARD_REQUESTS: Mapping[str, str] = {
    **_each("clock", "freezer frozen_time time_machine frozen_now"),
    **_each(
        "network",
        "responses requests_mock respx_mock respx_router httpx_mock aioresponses mock_aioresponse httpbin "
        "httpbin_secure vcr vcr_cassette vcr_config betamax_session betamax_recorder pook socket_disabled "
        "aiohttp_client rest_mock",
    ),
}
"""Fixtures of well known plugins that keep a kind out."""

GUARD_CALLS: Mapping[str, str] = {
    **_each("clock", "freeze_time freezegun.freeze_time time_machine.travel travel"),
    **_each(
        "network",
        "responses.activate responses.RequestsMock RequestsMock requests_mock.Mocker requests_mock.mock "
        "respx.mock respx.MockRouter httpretty.activate httpretty.enable httpretty.enabled "
        "vcr.use_cassette "
        "my_vcr.use_cassette use_cassette aioresponses.aioresponses aioresponses pook.on pook.use "
        "moto.mock_aws mock_aws httpx.MockTransport MockTransport httpx.ASGITransport httpx.WSGITransport "
        "requests_mock.Adapter",
    ),
}
"""Decorators and context managers that keep a kind out."""

GUARD_MARKS: Mapping[str, str] = {
    **_each("clock", "freeze_time time_machine freeze"),
    **_each(
        "network", "vcr default_cassette respx block_network responses disable_socket httpx_mock recorded"
    ),
}
"""Marks that keep a kind out."""

PATCHERS = (
    *("setattr", "mocker.patch", "patch", "patch.object", "patch.dict", "patch.multiple", "mocker.spy"),
    *("class_mocker.patch", "module_mocker.patch", "session_mocker.patch", "create_autospec"),
)
"""Ends of the names of calls that replace something; their arguments tell what."""

GUARD_WORDS: Mapping[str, frozenset[str]] = {
    "random": frozenset(
        [
            "random",
            "randint",
            "randrange",
            "choice",
            "choices",
            "shuffle",
            "sample",
            "uniform",
            "gauss",
            "uuid",
            "uuid1",
            "uuid4",
            "urandom",
            "secrets",
            "default_rng",
            "rng",
        ]
    ),
    "clock": frozenset(["time", "datetime", "date", "now", "today", "utcnow", "clock"]),
    "network": frozenset(
        [
            "requests",
            "httpx",
            "urllib",
            "urlopen",
            "urllib3",
            "request",
            "http",
            "socket",
            "aiohttp",
            "session",
            "client",
            "connect",
            "smtplib",
            "boto3",
            "yfinance",
            "yf",
            "download",
            "fetch",
        ]
    ),
}
"""What a replaced name must speak of to keep a kind out."""
