#!/usr/bin/python3
"""A small order service: charging an order and publishing the event is one transaction.

usage: DATABASE_URL=… orders.py charge ORDER CENTS [--fail | --crash]

--fail rolls back, --crash kills the process before the commit: in both cases there is neither a charge nor an event.
Needs psycopg2 (Debian: python3-psycopg2) and a database with postrider's outbox.
"""

import json
import os
import signal
import sys

import psycopg2


def charge(connection, order, cents, before_commit=lambda: None):
    """Charges the order and returns the id of its event."""
    with connection, connection.cursor() as cursor:  # commits at the end, rolls back when anything is raised
        cursor.execute("create table if not exists charge (order_id text primary key, cents int not null)")
        cursor.execute("insert into charge (order_id, cents) values (%s, %s)", (order, cents))
        cursor.execute(
            "select postrider.publish(%s, %s, %s, id => %s)",
            ("acme", "order.charged", json.dumps({"order": order, "cents": cents}), f"charge-{order}"),
        )
        event = cursor.fetchone()[0]
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
    connection = psycopg2.connect(os.environ["DATABASE_URL"])
    try:
        print(charge(connection, arguments[1], int(arguments[2]), before_commit))
    except RuntimeError as error:
        sys.exit(str(error))
    finally:
        connection.close()


if __name__ == "__main__":
    main(sys.argv[1:])
