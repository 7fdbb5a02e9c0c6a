"""A mail server that keeps what it gets."""

import contextlib
import dataclasses
import email
import email.message
import re

from aiosmtpd.controller import Controller

from .ports import lasting_port


@dataclasses.dataclass
class Received:
    sender: str
    to: str
    message: email.message.Message

    @property
    def text(self):
        return self.message.get_payload()

    @property
    def links(self):
        return re.findall(r"https?://\S+", self.text)


class Box:
    def __init__(self):
        self.mails = []
        self.refuses = False
        self.was_encrypted = False

    def to(self, address):
        return [mail for mail in self.mails if mail.to == address]

    async def handle_DATA(self, server, session, envelope):
        if self.refuses:
            return "451 come back later"
        self.was_encrypted = session.ssl is not None
        message = email.message_from_bytes(envelope.content)
        self.mails += [Received(envelope.mail_from, to, message) for to in envelope.rcpt_tos]
        return "250 taken"


@contextlib.contextmanager
def mail_server(scheme="smtp", **options):
    handler = Box()
    port = lasting_port()
    controller = Controller(handler, hostname="127.0.0.1", port=port, ready_timeout=60, **options)
    controller.start()
    handler.url = f"{scheme}://localhost:{port}"
    try:
        yield handler
    finally:
        controller.stop()
