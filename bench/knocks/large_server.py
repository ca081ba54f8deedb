#!/usr/bin/env python3
"""A server for very many connections and very long bodies, on one thread. It prints its port; loopback only.

    /                  two bytes
    /length/BYTES      so many, told by Content-Length
    /chunked/BYTES     so many, in chunks
"""

import asyncio
import signal

PIECE = b"x" * (1 << 18)


class Connection(asyncio.Protocol):
    def __init__(self):
        self.kept, self.may_write = b"", asyncio.Event()
        self.may_write.set()

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport

    def connection_lost(self, _) -> None:
        self.may_write.set()

    def pause_writing(self) -> None:
        self.may_write.clear()

    def resume_writing(self) -> None:
        self.may_write.set()

    def data_received(self, data: bytes) -> None:
        self.kept += data
        while b"\r\n\r\n" in self.kept:
            head, _, self.kept = self.kept.partition(b"\r\n\r\n")
            _, form, count = [*head.split()[1].decode().split("/"), ""][:3]
            if not form:
                self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            else:
                asyncio.ensure_future(self.long(form, int(count)))

    async def long(self, form: str, left: int) -> None:
        is_chunked = form == "chunked"
        told = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {left}"
        self.transport.write(f"HTTP/1.1 200 OK\r\n{told}\r\n\r\n".encode())
        while left and not self.transport.is_closing():
            piece = PIECE[:min(left, len(PIECE))]
            left -= len(piece)
            parts = (f"{len(piece):x}\r\n".encode(), piece, b"\r\n") if is_chunked else (piece,)
            self.transport.writelines(parts)
            await self.may_write.wait()
        if is_chunked:
            self.transport.write(b"0\r\n\r\n")


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
