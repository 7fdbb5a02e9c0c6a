#!/usr/bin/python3
"""Works on inbound webhooks of one source: claims, processes, acks.

usage: inbox_consumer.py DATABASE_URL SOURCE WORKER [--until-empty]

The ack is in the transaction of the work, so both happen or neither. A consumer that dies loses nothing: its lease
ends, and the message goes to the next one. NOTIFY wakes it; it also looks by itself every few seconds.
"""

import json
import select
import sys

import psycopg2

LEASE = "30 seconds"
LOOK_EVERY_SECONDS = 5


def process(cursor, message_id, body):
    """Your work. Here: a row per message."""
    cursor.execute("insert into processed (message_id, body, worker) values (%s, %s, %s)",
                   [message_id, json.dumps(json.loads(body)), sys.argv[3]])


def work(connection, source, worker):
    """Claims some messages and works on them; returns how many there were."""
    with connection, connection.cursor() as cursor:
        cursor.execute("select id, body from postrider.inbox_claim(%s, %s, 10, %s)", [worker, source, LEASE])
        claimed = cursor.fetchall()
    for message_id, body in claimed:
        try:
            with connection, connection.cursor() as cursor:
                process(cursor, message_id, body)
                cursor.execute("select postrider.inbox_ack(%s, %s)", [worker, [message_id]])
                if cursor.fetchone()[0] == 0:
                    connection.rollback()  # the lease is somebody else's by now, and so is the work
        except Exception as error:  # whatever it is, the message is tried again later
            with connection, connection.cursor() as cursor:
                cursor.execute("select postrider.inbox_nack(%s, %s, %s)", [worker, message_id, str(error)])
    return len(claimed)


def main():
    url, source, worker = sys.argv[1:4]
    until_empty = "--until-empty" in sys.argv
    connection, waker = psycopg2.connect(url), psycopg2.connect(url)
    waker.autocommit = True
    waker.cursor().execute("listen postrider_inbox")
    while True:
        while work(connection, source, worker) > 0:
            pass
        if until_empty:
            return
        select.select([waker], [], [], LOOK_EVERY_SECONDS)
        waker.poll()
        waker.notifies.clear()


if __name__ == "__main__":
    main()
