"""A crowd before the API, as a process of its own that gives way to everybody: streams, lists, huge bodies.

    python crowd.py HOST:PORT TOKEN SECONDS CLIENTS

Prints one line of JSON at its end: how many streams were served and refused, how often lists were read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
import time

LISTS = (
    "jobs?limit=50",
    "jobs?state=dead",
    "overview",
    "jobs?queue=mail",
    "statistics?window=24h",
    "dead/causes",
)
GIGABYTE = 1 << 30
served = refused = broken = lists = bodies = 0


async def opened(address: str, path: str, source: int, *, more: str = "") -> tuple:
    """A connection from one of our addresses, with its request sent."""
    host, port = address.split(":")
    local = (f"127.0.{source // 200}.{source % 200 + 1}", 0)
    reader, writer = await asyncio.open_connection(host, int(port), local_addr=local)
    writer.write(f"{path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n".encode())
    return reader, writer


async def stream(address: str, source: int, until: float, *, reads: bool = True) -> None:
    """Listen to what happens; or do not read at all."""
    global served, refused, broken
    try:
        reader, writer = await opened(address, "GET /api/v1/events", source)
        head = await asyncio.wait_for(reader.readline(), 30)
        if b" 200 " not in head:
            refused += 1
            writer.close()
            return
        served += 1
        while reads and time.monotonic() < until and await asyncio.wait_for(reader.read(65_536), 30):
            pass
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        writer.close()
    except (OSError, TimeoutError):
        broken += 1


async def reading(address: str, until: float) -> None:
    """One list after the other."""
    global lists
    while time.monotonic() < until:
        for path in LISTS:
            with contextlib.suppress(OSError):
                reader, writer = await opened(address, f"GET /api/v1/{path}", 1, more="Connection: close\r\n")
                await reader.read(-1)
                writer.close()
                lists += 1
        await asyncio.sleep(0)


async def flooding(address: str, token: str, until: float) -> None:
    """Bodies of a gigabyte, announced and not."""
    global bodies
    kind = f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    while time.monotonic() < until:
        for length in (f"Content-Length: {GIGABYTE}", "Transfer-Encoding: chunked"):
            part = b"10000\r\n" + b"x" * 65_536 + b"\r\n" if "chunked" in length else b"x" * 65_536
            try:
                _, writer = await opened(address, "POST /api/v1/jobs", 2, more=f"{kind}{length}\r\n")
                for _ in range(GIGABYTE >> 16):
                    writer.write(part)
                    await writer.drain()
                    if time.monotonic() > until:
                        break
                writer.close()
            except OSError:
                bodies += 1
        await asyncio.sleep(0.1)


async def gather(address: str, token: str, seconds: float, clients: int) -> None:
    """All of them at once, until it is over."""
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as crowd:
        for number in range(100):
            crowd.create_task(stream(address, number // 20 * 10, until, reads=number % 5 > 0))
        crowd.create_task(reading(address, until))
        crowd.create_task(flooding(address, token, until))
        for number in range(clients):
            crowd.create_task(stream(address, 100 + number, until))
            if number % 50 == 49:
                await asyncio.sleep(0.01)


def main() -> None:
    """Crowd, and tell."""
    os.nice(10)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    address, token, seconds, clients = sys.argv[1:]
    asyncio.run(gather(address, token, float(seconds), int(clients)))
    print(
        json.dumps({"served": served, "refused": refused, "broken": broken, "lists": lists, "bodies": bodies})
    )


if __name__ == "__main__":
    main()
