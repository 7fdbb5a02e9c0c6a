"""Stands between a node and Postgres on a unix socket and drops results: the server has executed the statement (and
committed it), but the node never hears of it. Reads the server's side of the protocol message by message."""

import asyncio
import pathlib
import random
import shutil
import struct
import tempfile
import threading

SOCKET = ".s.PGSQL.5432"


class Session:
    def __init__(self, proxy, client_reader, client_writer):
        self.proxy = proxy
        self.client_reader, self.client_writer = client_reader, client_writer
        self.application = ""

    async def run(self):
        try:
            server_reader, self.server_writer = await asyncio.open_unix_connection(str(self.proxy.target))
        except OSError:
            self.client_writer.close()
            return
        upward = asyncio.ensure_future(self.forward_requests())
        try:
            await self.forward_answers(server_reader)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            upward.cancel()
            self.client_writer.close()
            self.server_writer.close()

    async def forward_requests(self):
        try:
            size = await self.client_reader.readexactly(4)
            start = await self.client_reader.readexactly(struct.unpack("!I", size)[0] - 4)
            words = start[4:].split(b"\0")
            self.application = dict(zip(words[::2], words[1::2])).get(b"application_name", b"").decode()
            self.server_writer.write(size + start)
            while data := await self.client_reader.read(65536):
                self.server_writer.write(data)
                await self.server_writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        self.server_writer.close()

    async def forward_answers(self, server_reader):
        """An exchange ends with ReadyForQuery; what belongs to it is held back until then."""
        is_connected = False
        held = b""
        while True:
            head = await server_reader.readexactly(5)
            held += head + await server_reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
            is_ready = head[:1] == b"Z"
            if is_ready and is_connected and self.proxy.loses(self.application):
                return
            # A notification or a request for a password belongs to no exchange.
            if is_ready or head[:1] in (b"A", b"R", b"E"):
                is_connected = is_connected or is_ready
                self.client_writer.write(held)
                await self.client_writer.drain()
                held = b""


class PgProxy:
    def __init__(self, server_folder, seed):
        self.target = pathlib.Path(server_folder) / SOCKET
        self.folder = tempfile.mkdtemp(prefix="pr-proxy-", dir="/tmp")
        self.share = 0.0         # of exchanges whose result is lost
        self.lost = {}           # application → how many
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(30)

    async def _listen(self):
        return await asyncio.start_unix_server(lambda *streams: Session(self, *streams).run(),
                                               str(pathlib.Path(self.folder) / SOCKET))

    def loses(self, application):
        if self._random.random() >= self.share:
            return False
        self.lost[application] = self.lost.get(application, 0) + 1
        return True

    def close(self):
        async def stop():
            self._server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        shutil.rmtree(self.folder, ignore_errors=True)
