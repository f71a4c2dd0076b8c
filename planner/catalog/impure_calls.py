"""Calls that give another answer each time: chance, the clock, other machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_HTTP = "get post put delete patch head options request stream"

CHANCE: Mapping[str, str] = {
    "random": "random randint randrange choice choices shuffle sample uniform gauss normalvariate "
    "triangular lognormvariate betavariate expovariate gammavariate vonmisesvariate paretovariate "
    "weibullvariate getrandbits randbytes binomialvariate SystemRandom",
    "numpy.random": "rand randn randint random random_sample ranf sample random_integers choice shuffle "
    "permutation uniform normal standard_normal beta binomial chisquare exponential gamma geometric gumbel "
    "laplace logistic lognormal multinomial multivariate_normal poisson rayleigh weibull standard_t",
    "torch": "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial",
    "secrets": "token_hex token_bytes token_urlsafe choice randbelow randbits SystemRandom",
    "uuid": "uuid1 uuid4",
    "os": "urandom getrandom",
    "faker": "Faker",
    "hypothesis": "given",
}
"""By module, the functions that draw from a generator nobody has seeded."""

GENERATORS = frozenset(
    f"{module}.{name}"
    for module, names in (
        ("random", "Random seed"),
        ("numpy.random", "default_rng RandomState PCG64 MT19937 Philox SFC64 SeedSequence seed"),
    )
    for name in names.split()
)
"""Generators, and their seeding, that take what the system gives where they are given no argument."""

CLOCK: Mapping[str, str] = {
    "time": "time time_ns",
    "datetime.datetime": "now utcnow today",
    "datetime.date": "today",
    "pandas.Timestamp": "now today utcnow",
    "arrow": "now utcnow",
    "pendulum": "now today",
    "django.utils.timezone": "now",
}
NETWORK: Mapping[str, str] = {
    "urllib.request": "urlopen urlretrieve",
    "requests": f"{_HTTP} Session",
    "httpx": f"{_HTTP} Client AsyncClient",
    "http.client": "HTTPConnection HTTPSConnection",
    "socket": "create_connection getaddrinfo gethostbyname",
    "aiohttp": "ClientSession request",
    "urllib3": "PoolManager request",
    "smtplib": "SMTP SMTP_SSL",
    "ftplib": "FTP FTP_TLS",
    "yfinance": "download Ticker",
}
