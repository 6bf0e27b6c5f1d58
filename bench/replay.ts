/**
 * Replay of a long log: events per second through the committed fleet, and the time of a start until `/readyz` with and
 * without a checkpoint and for the first start, which fills the read models. Floors: a bare read of the same events as
 * MessagePack, and a start on an empty folder.
 */
import { join } from 'node:path';
import { prepareService } from '../scripts/stack/service.js';
import { startChild } from './child.js';
import { beside, median, rounded, type Figure, type Report } from './figures.js';
import type { BenchOptions } from './options.js';
import type { Replayed } from './processes/replay.js';
import { residentBytes, whileRunning, withFolder } from './stack.js';

const mib = (bytes: number): number => Math.round(bytes / 2 ** 20);
const writeWithinMs = 900_000;
const startWithinMs = 900_000;

interface Started {
  readonly ms: number;
  readonly peakBytes: number;
  /** When it was ready, without the mapped pages of the stores' files. */
  readonly ownBytes: number;
}

/** Starts the service, waits until it is ready, and stops it. */
async function start(dataDir: string): Promise<Started> {
  const service = await prepareService({
    dataDir,
    env: { SVC_LOG_LEVEL: 'warn', SVC_ADMIN_PASSWORD: 'a password for benchmarks only' },
    readyWithinMs: startWithinMs,
    askEveryMs: 10,
  });
  return whileRunning(service, async (ms) => {
    const { peak, anonymous } = await residentBytes(service.program().pid);
    return { ms, peakBytes: peak, ownBytes: anonymous };
  });
}

export async function replay({ quick, events }: BenchOptions): Promise<Report> {
  const rounds = quick ? 2 : 3;
  return withFolder(async (folder) => {
    const [dataDir, bareDir, emptyDir] = [join(folder, 'data'), join(folder, 'bare'), join(folder, 'empty')];
    const inChild = async <T>(what: string, body?: unknown): Promise<T> => {
      const child = startChild('processes/replay', [dataDir, bareDir]);
      try {
        return await child.ask<T>(what, body, writeWithinMs);
      } finally {
        await child.close();
      }
    };
    const began = performance.now();
    const written = await inChild<number>('write', events);
    const writeMs = performance.now() - began;

    const folded: Replayed[] = [];
    const bare: Replayed[] = [];
    for (let round = 0; round < rounds; round += 1) {
      bare.push(await inChild('bareRead'));
      folded.push(await inChild('fold'));
    }
    const perSecond = (all: readonly Replayed[]): number[] => all.map((one) => (one.events * 1000) / one.ms);

    await start(emptyDir);
    const first = await start(dataDir);
    const [empty, withCheckpoint, without]: [Started[], Started[], Started[]] = [[], [], []];
    for (let round = 0; round < rounds; round += 1) {
      empty.push(await start(emptyDir));
      withCheckpoint.push(await start(dataDir));
    }
    // Last, because a service that is stopped as soon as it is ready does not write a new checkpoint.
    for (let round = 0; round < rounds; round += 1) {
      await inChild('spoilCheckpoint');
      without.push(await start(dataDir));
    }
    const ms = (all: readonly Started[]): number[] => all.map((one) => one.ms);
    const peak = (all: readonly { readonly peakBytes: number }[]): Figure =>
      mib(median(all.map((one) => one.peakBytes)));
    const memory = (all: readonly Started[]): Figure => ({
      peak_rss_with_mapped_files: peak(all),
      own_when_ready: mib(median(all.map((one) => one.ownBytes))),
    });
    return {
      bench: 'replay',
      figures: {
        events: written,
        write_seconds: rounded(writeMs / 1000),
        replay_events_per_second: beside(perSecond(folded), perSecond(bare)),
        replay_peak_rss_mib: { service: peak(folded), floor: peak(bare) },
        start_ms: {
          floor_empty_folder: rounded(median(ms(empty))),
          with_checkpoint: beside(ms(withCheckpoint), ms(empty)),
          without_checkpoint: beside(
            ms(without),
            ms(empty).map((one, round) => one + (bare[round]?.ms ?? 0)),
          ),
          first_start_fills_read_models: rounded(first.ms),
          first_start_events_per_second: rounded((written * 1000) / first.ms),
        },
        start_memory_mib: {
          empty: memory(empty),
          with_checkpoint: memory(withCheckpoint),
          without_checkpoint: memory(without),
          first: memory([first]),
        },
      },
    };
  });
}
