#!/usr/bin/python3
"""A small order service: charging an order and publishing the event is one transaction.

usage: DATABASE_URL=… orders.py charge ORDER CENTS [--fail | --crash]

--fail rolls back, --crash kills the process before the commit: in both cases there is neither a charge nor an event.
"""

import os
import signal
import sys

import psycopg
from psycopg.types.json import Json


def charge(connection, order, cents, before_commit=lambda: None):
    """Charges the order and returns the ID of its event."""
    with connection.transaction():  # commits at the end, rolls back when anything is raised
        connection.execute("insert into charge (order_id, cents) values (%s, %s)", (order, cents))
        [event] = connection.execute(
            "select postrider.publish(%s, %s, %s, id => %s)",
            ("acme", "order.charged", Json({"order": order, "cents": cents}), f"charge-{order}"),
        ).fetchone()
        before_commit()
    return event


def fail():
    raise RuntimeError("the payment provider declined")


def crash():
    os.kill(os.getpid(), signal.SIGKILL)


def main(arguments):
    if len(arguments) < 3 or arguments[0] != "charge":
        sys.exit(__doc__)
    before_commit = {"--fail": fail, "--crash": crash}.get((arguments[3:] or [""])[0], lambda: None)
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        try:
            print(charge(connection, arguments[1], int(arguments[2]), before_commit))
        except RuntimeError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
