"""Dramatiq: prefetch 256, only the Retries middleware, acknowledged after the run."""

import os
import time

import marks
import producing

os.environ.setdefault("dramatiq_queue_prefetch", "256")  # read when dramatiq is imported

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Retries

# Maintenance at every command: an idle node would otherwise look for dead workers once in 1,000 commands.
safe = {"heartbeat_timeout": 10_000, "maintenance_chance": 1_000_000} if marks.SAFE else {}
broker = RedisBroker(url=marks.REDIS_URL, middleware=[Retries()], **safe)
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(number, enqueued):
    marks.mark(number, enqueued)


@dramatiq.actor
def hold(number, enqueued):
    time.sleep(marks.hold(number, enqueued))


if __name__ == "__main__":
    producing.main(producing.Producer(one=noop.send, hold=hold.send))
