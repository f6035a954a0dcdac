"""The others: a mail server and a partner's web server that write down what they receive.

What stands in their books is evidence that no part of Millpond has touched. Both refuse some messages the
first time, as real servers do. A process of its own, which ends when the one that started it does.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

REFUSE_EVERY = 25  # of this many new messages one is refused the first time
THINKING = 0.02  # seconds that a server takes to answer
_NUMBER = re.compile(rb"^Message-ID: <(\d+)@", re.IGNORECASE | re.MULTILINE)
_REQUEST = re.compile(rb"POST /(\w+)/(\d+) HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\nContent-Length: *(\d+)", re.IGNORECASE)


class Book:
    """What a server has received, a number on each line."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)
        self._known: set[int] = set()

    def refuses(self, number: int) -> bool:
        """Is it one of those that must come again?"""
        is_new = number not in self._known
        self._known.add(number)
        return is_new and len(self._known) % REFUSE_EVERY == 3

    def write(self, number: int) -> None:
        """Keep it. It is with the kernel before the sender hears that it was taken."""
        self._file.write(f"{number}\n")


class MailServer:
    """As much SMTP as a client needs to deliver."""

    def __init__(self, book: Book) -> None:
        self._book = book

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"220 sink.rush.example\r\n")
            while line := await reader.readline():
                command = line[:4].upper().strip()
                if command == b"QUIT":
                    writer.write(b"221 bye\r\n")
                    break
                writer.write(await self._answer(command, reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client was killed
        finally:
            writer.close()

    async def _answer(
        self, command: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes:
        if command != b"DATA":
            known = command in (b"EHLO", b"HELO", b"MAIL", b"RCPT", b"RSET", b"NOOP")
            return b"250 ok\r\n" if known else b"502 unknown\r\n"
        writer.write(b"354 go on\r\n")
        message = await reader.readuntil(b"\r\n.\r\n")
        await asyncio.sleep(THINKING)
        found = _NUMBER.search(message)
        if found is None:
            return b"554 a message without a number\r\n"
        if self._book.refuses(int(found[1])):
            return b"451 greylisted, try again later\r\n"
        self._book.write(int(found[1]))
        return b"250 taken\r\n"


class WebServer:
    """As much HTTP as a webhook needs: /hooks/NUMBER is taken, anything else is gone."""

    def __init__(self, book: Book) -> None:
        self._book = book

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            await reader.readexactly(int(length[1]) if length else 0)
            await asyncio.sleep(THINKING)
            status = self._status(head)
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client was killed
        finally:
            writer.close()

    def _status(self, head: bytes) -> str:
        request = _REQUEST.match(head)
        if request is None:
            return "400 Bad Request"
        if request[1] != b"hooks":
            return "410 Gone"
        number = int(request[2])
        if self._book.refuses(number):
            return "503 Service Unavailable"
        self._book.write(number)
        return "204 No Content"


async def serve(folder: Path) -> None:
    """Serve until standard input ends; the ports are told on standard output."""
    mail = await asyncio.start_server(MailServer(Book(folder / "mail.log")), "127.0.0.1", 0, backlog=1000)
    web = await asyncio.start_server(WebServer(Book(folder / "webhooks.log")), "127.0.0.1", 0, backlog=1000)
    ports = {"mail": mail.sockets[0].getsockname()[1], "webhooks": web.sockets[0].getsockname()[1]}
    print(json.dumps(ports), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
