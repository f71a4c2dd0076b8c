"""Data about the world around a project: what brings a fixture, mark or option; what error types say."""

from __future__ import annotations

import errno

PLUGIN_OF_FIXTURE: dict[str, str] = {
    "admin_client": "pytest-django",
    "aiohttp_client": "pytest-aiohttp",
    "aioresponses": "aioresponses",
    "anyio_backend": "anyio",
    "benchmark": "pytest-benchmark",
    "browser": "pytest-playwright",
    "celery_app": "celery",
    "celery_worker": "celery",
    "client": "pytest-django or pytest-flask",
    "cov": "pytest-cov",
    "dask_client": "distributed",
    "datadir": "pytest-datadir",
    "data_regression": "pytest-regressions",
    "db": "pytest-django",
    "django_assert_num_queries": "pytest-django",
    "django_db_setup": "pytest-django",
    "django_user_model": "pytest-django",
    "docker_ip": "pytest-docker",
    "docker_services": "pytest-docker",
    "event_loop": "pytest-asyncio",
    "event_loop_policy": "pytest-asyncio",
    "faker": "Faker",
    "file_regression": "pytest-regressions",
    "freezer": "pytest-freezer",
    "fs": "pyfakefs",
    "httpbin": "pytest-httpbin",
    "httpserver": "pytest-httpserver",
    "httpx_mock": "pytest-httpx",
    "image_regression": "pytest-regressions",
    "live_server": "pytest-django or pytest-flask",
    "mocker": "pytest-mock",
    "module_mocker": "pytest-mock",
    "mongodb": "pytest-mongodb",
    "num_regression": "pytest-regressions",
    "original_datadir": "pytest-datadir",
    "page": "pytest-playwright",
    "postgresql": "pytest-postgresql",
    "qapp": "pytest-qt",
    "qtbot": "pytest-qt",
    "redisdb": "pytest-redis",
    "requests_mock": "requests-mock",
    "respx_mock": "respx",
    "rf": "pytest-django",
    "session_mocker": "pytest-mock",
    "settings": "pytest-django",
    "shared_datadir": "pytest-datadir",
    "snapshot": "syrupy",
    "socket_disabled": "pytest-socket",
    "socket_enabled": "pytest-socket",
    "subtests": "pytest 9 or pytest-subtests",
    "testdir": "pytest's pytester plugin",
    "pytester": "pytest's pytester plugin",
    "testrun_uid": "pytest-xdist",
    "time_machine": "time-machine",
    "transactional_db": "pytest-django",
    "unused_tcp_port": "pytest-asyncio",
    "vcr": "pytest-recording or pytest-vcr",
    "virtualenv": "pytest-virtualenv",
    "worker_id": "pytest-xdist",
}
"""Names of fixtures that well-known plugins bring."""


PLUGIN_OF_MARK: dict[str, str] = {
    "anyio": "anyio",
    "asyncio": "pytest-asyncio",
    "benchmark": "pytest-benchmark",
    "block_network": "pytest-recording",
    "dependency": "pytest-dependency",
    "django_db": "pytest-django",
    "flaky": "pytest-rerunfailures or flaky",
    "forked": "pytest-forked",
    "freeze_time": "pytest-freezer",
    "httpx_mock": "pytest-httpx",
    "order": "pytest-order",
    "playwright": "pytest-playwright",
    "random_order": "pytest-random-order",
    "repeat": "pytest-repeat",
    "respx": "respx",
    "run": "pytest-ordering",
    "timeout": "pytest-timeout",
    "trio": "pytest-trio",
    "twisted": "pytest-twisted",
    "vcr": "pytest-recording or pytest-vcr",
    "xdist_group": "pytest-xdist",
}
"""Names of marks that well-known plugins bring."""

PLUGIN_OF_OPTION: dict[str, str] = {
    "--asyncio-mode": "pytest-asyncio",
    "--benchmark": "pytest-benchmark",
    "--cov": "pytest-cov",
    "--django": "pytest-django",
    "--ds": "pytest-django",
    "--dist": "pytest-xdist",
    "--forked": "pytest-forked",
    "--html": "pytest-html",
    "--instafail": "pytest-instafail",
    "--json-report": "pytest-json-report",
    "--mypy": "pytest-mypy",
    "--numprocesses": "pytest-xdist",
    "-n": "pytest-xdist",
    "--random-order": "pytest-random-order",
    "--record-mode": "pytest-recording",
    "--reruns": "pytest-rerunfailures",
    "--ruff": "pytest-ruff",
    "--snapshot": "syrupy",
    "--socket": "pytest-socket",
    "--disable-socket": "pytest-socket",
    "--timeout": "pytest-timeout",
}
"""Beginnings of options that well-known plugins bring."""

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
EXHAUSTED = frozenset(
    {
        errno.EMFILE,
        errno.ENFILE,
        errno.EAGAIN,
        errno.ENOMEM,
        errno.EIO,
        errno.ESTALE,
        errno.ENODEV,
        errno.ENXIO,
    }
)
UNREACHABLE = frozenset(
    {
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.ECONNABORTED,
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.ENETDOWN,
        errno.EHOSTDOWN,
        errno.ETIMEDOUT,
        errno.EADDRINUSE,
        errno.EADDRNOTAVAIL,
    }
)
"""Error numbers of a network or a service that is not there."""

NAME_RESOLUTION = ("socket.gaierror", "socket.herror")

SERVICE_ERRORS: dict[str, str] = {
    "aiohttp.client_exceptions.ClientConnectorError": "an HTTP service",
    "asyncpg.exceptions.CannotConnectNowError": "PostgreSQL",
    "botocore.exceptions.EndpointConnectionError": "an AWS endpoint",
    "botocore.exceptions.NoCredentialsError": "AWS credentials",
    "docker.errors.DockerException": "the Docker daemon",
    "elastic_transport.ConnectionError": "Elasticsearch",
    "grpc._channel._InactiveRpcError": "a gRPC service",
    "httpcore.ConnectError": "an HTTP service",
    "httpx.ConnectError": "an HTTP service",
    "httpx.ConnectTimeout": "an HTTP service",
    "kafka.errors.NoBrokersAvailable": "a Kafka broker",
    "pika.exceptions.AMQPConnectionError": "RabbitMQ",
    "psycopg.OperationalError": "PostgreSQL",
    "psycopg2.OperationalError": "PostgreSQL",
    "pymongo.errors.ServerSelectionTimeoutError": "MongoDB",
    "pymysql.err.OperationalError": "MySQL",
    "redis.exceptions.ConnectionError": "Redis",
    "requests.exceptions.ConnectionError": "an HTTP service",
    "requests.exceptions.ConnectTimeout": "an HTTP service",
    "urllib3.exceptions.MaxRetryError": "an HTTP service",
    "urllib3.exceptions.NewConnectionError": "an HTTP service",
}
"""Qualified names of the errors that clients raise when a service is not there."""

HTTP_ERRORS = frozenset(
    {
        "urllib.error.HTTPError",
        "requests.exceptions.HTTPError",
        "httpx.HTTPStatusError",
        "aiohttp.client_exceptions.ClientResponseError",
    }
)
"""What clients raise for the status that a service answered with."""

MACHINE_ERRORS: dict[str, str] = {
    "locale.Error": "the locale is not installed on this machine",
    "zoneinfo._common.ZoneInfoNotFoundError": "the time zone data is not installed on this machine",
    "_tkinter.TclError": "there is no display",
    "selenium.common.exceptions.NoSuchDriverException": "the browser driver is not installed",
    "ssl.SSLCertVerificationError": "the machine does not trust the certificate",
    "shutil.SpecialFileError": "the file system holds a special file",
    "importlib.metadata.PackageNotFoundError": "the distribution is not installed",
    "pkg_resources.DistributionNotFound": "the distribution is not installed",
    "pkg_resources.VersionConflict": "an installed package has another version than is asked for",
    "pkg_resources.ContextualVersionConflict": "an installed package has another version than is asked for",
}
"""Qualified names of errors that speak about the machine."""

MACHINE_MESSAGES: tuple[tuple[str, str], ...] = (
    ("builtins.FileNotFoundError", "No usable temporary directory found in"),
    ("builtins.RuntimeError", "Could not determine home directory"),
    ("builtins.RuntimeError", "can't start new thread"),
    ("builtins.KeyError", "'getpwuid(): uid not found"),
    ("builtins.KeyError", "'getgrgid(): gid not found"),
)
"""Types and how their messages begin, where the standard library says that the machine lacks something."""

CRASH_SIGNALS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP"})
"""Signals by which a process ends through its own doing."""
