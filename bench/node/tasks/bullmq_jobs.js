// BullMQ: concurrency 100, finished jobs removed. The verbs of producing.py, and `worker`.
const fs = require('fs');
const { Queue, Worker } = require('bullmq');

const place = new URL(process.env.BENCH_REDIS);
const connection = { host: place.hostname, port: Number(place.port), db: Number(place.pathname.slice(1)), maxRetriesPerRequest: null };
const safe = process.env.BENCH_SETTINGS === 'safe' ? { lockDuration: 10000, stalledInterval: 5000 } : {};
const marks = process.env.BENCH_MARKS;
const record = Buffer.alloc(32);
const kept = { removeOnComplete: true };
const now = () => process.hrtime.bigint();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let file = null;

function mark(number, enqueued) {
  const began = now();
  if (file === null) file = fs.openSync(marks, 'a');
  [BigInt(number), BigInt(enqueued), began, BigInt(process.pid)].forEach((value, place) => record.writeBigInt64LE(value, 8 * place));
  fs.writeSync(file, record);
}

async function run(job) {
  mark(job.data.number, job.data.enqueued);
  if (job.name === 'hold' && !fs.existsSync(`${marks}.${job.data.number}`)) await sleep(300000);
}

function work() {
  const worker = new Worker('bench', run, { connection, concurrency: 100, ...safe });
  worker.on('error', (error) => console.error(error));
}

const made = (number, name = 'noop') => [name, { number, enqueued: now().toString() }, kept];

async function produce(verb, first, second) {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  const begin = now();
  const seconds = () => Number(now() - begin) / 1e9;
  const number = Number(first);
  if (verb === 'hold') await queue.add(...made(number, 'hold'));
  for (let start = 0; verb === 'bulk' && start < number; start += 1000) {
    const jobs = [];
    for (let job = start; job < Math.min(number, start + 1000); job++) {
      const [name, data, opts] = made(job);
      jobs.push({ name, data, opts });
    }
    await queue.addBulk(jobs);
  }
  for (let job = 0; (verb === 'enqueue' || verb === 'paced') && job < number; job++) {
    const rest = job * Number(second || 0) - seconds();
    if (rest > 0) await sleep(rest * 1000);
    await queue.add(...made(job));
  }
  console.log(JSON.stringify({ jobs: number, seconds: seconds() }));
  process.exit(0);
}

const [verb, first, second] = process.argv.slice(2);
if (verb === 'worker') work();
else if (verb !== 'setup') produce(verb, first, second);
