"""Which Redis or Valkey server a URL means, and how it is shown to people."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from millpond.config import hide_password
from millpond.errors import OptionError


class Address:
    """What a URL says: where the server is, which namespace, whether it is a cluster."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.namespace = options.pop("namespace", "millpond")
        self.cluster = options.pop("cluster", "").lower() in ("1", "true", "yes", "on")
        if not self.namespace or set("{}\0") & set(self.namespace):
            raise OptionError(
                f"namespace={self.namespace!r} must have a name without braces, as in ?namespace=shop"
            )
        login, at, place = parts.netloc.rpartition("@")
        self.hosts = tuple(_host_and_port(one) for one in place.split(",")) if place else ()
        if "" in place.split(",")[1:] or place.startswith(","):
            raise ValueError(f"a comma without a host in {place!r}")
        if len(self.hosts) > 1 and not self.cluster:
            raise OptionError(
                f"{hide_password(url)!r} names several hosts: for the nodes of one cluster add cluster=true; "
                "for the servers of a Sentinel use RedisStore.from_client"
            )
        scheme = {"valkey": "redis", "valkeys": "rediss"}.get(parts.scheme, parts.scheme)
        query = f"?{urlencode(options)}" if options else ""
        self.driver_url = f"{scheme}://{login}{at}{place.partition(',')[0]}{parts.path}{query}"
        user = unquote(login.partition(":")[0])
        shown = f"{user}@{place}" if at and user else place
        query = f"?{parts.query}" if parts.query else ""
        self.url = hide_password(f"{parts.scheme}://{shown}{parts.path}{query}")


def _host_and_port(place: str) -> tuple[str, int]:
    parts = urlsplit(f"//{place}")
    return parts.hostname or "localhost", parts.port or 6379
