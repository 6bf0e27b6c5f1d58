/** The follower delivers whole commands, each once and in order, from a store that drops, repeats and splits. */
import { describe, expect, it, vi } from 'vitest';
import { streams, type ForeignEvent, type RecordedCommand, type RecordedEvent } from '../../src/kernel/event.js';
import type { EventStore, LogItem, ResumePoint, SubscribeOptions } from '../../src/storage/event-store.js';
import { BrokenLogError, ForeignEventError } from '../../src/storage/broken-log.js';
import {
  createCommandAssembler,
  followLog,
  giveUpMs,
  readWholeLog,
  type FollowItem,
} from '../../src/storage/follow.js';
import { hostileEventStore } from '../support/hostile.js';
import { storesInMemory } from '../support/stores-in-memory.js';
import { appendAtEnd, commandOf } from './contract/appending.js';

async function follow(
  store: EventStore,
  after: ResumePoint | 'start',
  done: (commands: readonly RecordedCommand[], item: FollowItem) => boolean,
): Promise<{ commands: RecordedCommand[]; items: FollowItem[] }> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), 25_000);
  const commands: RecordedCommand[] = [];
  const items: FollowItem[] = [];
  for await (const item of followLog(store, {
    streams: ['svc-0', 'svc-1', streams.fleet, streams.signins],
    after,
    signal: stop.signal,
  })) {
    items.push(item);
    if (item.kind === 'commands') commands.push(...item.commands);
    if (done(commands, item)) stop.abort();
  }
  clearTimeout(timer);
  return { commands, items };
}

const commandIds = (commands: readonly RecordedCommand[]): string[] =>
  commands.map(({ events }) => events[0].metadata.command.id);

function expectWhole(commands: readonly RecordedCommand[]): void {
  for (const { events, stream } of commands) {
    expect(events).toHaveLength(events[0].metadata.command.count);
    expect(events.map(({ metadata }) => metadata.command.index)).toEqual(events.map((_, index) => index));
    expect(events.every((event) => event.stream === stream)).toBe(true);
  }
}

const foreign = (stream: string, revision: number): ForeignEvent => ({
  id: 'e',
  type: 'OrderPlaced',
  stream,
  revision,
  position: 10 * revision + 5,
  foreign: 'it has no metadata',
});

/** A store whose subscriptions play one list of items each and then wait. */
function scripted(...scripts: readonly (readonly (LogItem | Error)[])[]): {
  store: EventStore;
  startPoints: unknown[];
} {
  const startPoints: unknown[] = [];
  let next = 0;
  async function* subscribe({ after, signal }: SubscribeOptions): AsyncGenerator<LogItem, void, void> {
    startPoints.push(after);
    for (const item of scripts[next++] ?? []) {
      if (item instanceof Error) throw item;
      yield item;
    }
    if (next < scripts.length) return;
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  }
  return { store: { subscribe } as unknown as EventStore, startPoints };
}

function recorded(count: number, position: number): RecordedEvent[] {
  return commandOf(count).map((event, index) => ({
    ...event,
    stream: 'svc-fleet',
    revision: position + index,
    position: position + index,
  }));
}

describe('followLog over a hostile store', () => {
  it.each([1, 2, 3])('hands out every command once, whole and in order (seed %i)', async (seed) => {
    const store = hostileEventStore(storesInMemory().eventStore, seed);
    const wanted = new Set<string>();
    const sizes = [1, 3, 7, 40, 2];
    const appending = (async () => {
      for (let round = 0; round < 60; round += 1) {
        // Several commands in one append, as the gateway groups them.
        const group = Array.from({ length: 1 + (round % 3) }, (_, index) =>
          commandOf(sizes[(round + index) % sizes.length]!),
        );
        for (const [event] of group) wanted.add(event!.metadata.command.id);
        await appendAtEnd(store, `svc-${round % 2}`, group.flat());
      }
    })();
    const total = 120;
    const [live] = await Promise.all([follow(store, 'start', (commands) => commands.length >= total), appending]);
    expect(new Set(commandIds(live.commands))).toEqual(wanted);
    expect(live.commands).toHaveLength(wanted.size);
    expectWhole(live.commands);
    const positions = live.commands.flatMap(({ events }) => events.map(({ position }) => position));
    expect(positions).toEqual([...positions].sort((a, b) => a - b));

    const points = live.items.flatMap((item) => ('point' in item ? [item.point] : []));
    for (let index = 0; index < points.length; index += Math.ceil(points.length / 8)) {
      const point = points[index]!;
      const rest = live.commands.filter(({ events }) => events[0].position > point.commit);
      const again = await follow(store, point, (commands, item) =>
        rest.length === 0 ? item.kind === 'caught_up' : commands.length >= rest.length,
      );
      expect(commandIds(again.commands)).toEqual(commandIds(rest));
      expectWhole(again.commands);
    }
    const atEnd = await follow(store, 'start', (_, item) => item.kind === 'caught_up');
    expect(atEnd.commands).toHaveLength(total);
    await store.close();
  });
});

describe('followLog', () => {
  it('reports a caught_up that came inside a command after that command', async () => {
    const command = recorded(3, 0);
    const { store } = scripted([
      { kind: 'events', events: command.slice(0, 2) },
      { kind: 'caught_up' },
      { kind: 'caught_up' },
      { kind: 'events', events: command.slice(2) },
    ]);
    const { items } = await follow(store, 'start', (_, item) => item.kind === 'caught_up');
    expect(items.map(({ kind }) => kind)).toEqual(['commands', 'caught_up']);
  });

  it('discards a held-back caught_up when the subscription drops, as the next one repeats it', async () => {
    const command = recorded(2, 0);
    const { store, startPoints } = scripted(
      [{ kind: 'events', events: command.slice(0, 1) }, { kind: 'caught_up' }, new Error('dropped')],
      [{ kind: 'events', events: command }, { kind: 'events', events: recorded(1, 2) }, { kind: 'caught_up' }],
    );
    const { items, commands } = await follow(store, 'start', (_, item) => item.kind === 'caught_up');
    expect(items.map(({ kind }) => kind)).toEqual(['dropped', 'commands', 'commands', 'caught_up']);
    expect(commands).toHaveLength(2);
    expect(startPoints).toEqual(['start', 'start']);
  });

  it('throws when events of a command are missing instead of retrying forever', async () => {
    const first = recorded(3, 0);
    const second = recorded(1, 3);
    for (const events of [[first[0]!, first[2]!], [first[0]!, first[1]!, second[0]!], [first[1]!]]) {
      const { store, startPoints } = scripted([{ kind: 'events', events }]);
      await expect(follow(store, 'start', () => false)).rejects.toThrow(BrokenLogError);
      expect(startPoints).toHaveLength(1);
    }
  });

  it('passes over events of somebody else among facts, and resumes behind them', async () => {
    const [before] = recorded(1, 0);
    const signins = foreign(streams.signins, 2);
    const { store, startPoints } = scripted(
      [{ kind: 'events', events: [before!, signins] }, new Error('dropped')],
      [{ kind: 'events', events: [signins, ...recorded(1, 30)] }, { kind: 'caught_up' }],
    );
    const { items, commands } = await follow(store, 'start', (_, item) => item.kind === 'caught_up');
    expect(items.map(({ kind }) => kind)).toEqual(['commands', 'checkpoint', 'dropped', 'commands', 'caught_up']);
    expect(commands).toHaveLength(2);
    expect(startPoints).toEqual(['start', { commit: signins.position, prepare: signins.position }]);
  });

  it('hands out what stands before an event of somebody else in the fleet, and ends there for good', async () => {
    const { store, startPoints } = scripted([
      { kind: 'events', events: [...recorded(2, 0), foreign(streams.fleet, 2), ...recorded(1, 3)] },
    ]);
    const handedOut: RecordedCommand[] = [];
    const following = follow(store, 'start', (commands) => handedOut.push(...commands) < 0);
    await expect(following).rejects.toThrow(
      'svc-fleet@2 (event e) was not written by this service: it has no metadata; see docs/how-to/shared-eventstoredb.md',
    );
    await expect(following).rejects.toThrow(ForeignEventError);
    expect(handedOut).toHaveLength(1);
    expect(startPoints).toHaveLength(1);
  });

  it('takes no point inside a command', async () => {
    const command = recorded(2, 5);
    const { store, startPoints } = scripted(
      [
        { kind: 'checkpoint', point: { commit: 4, prepare: 0 } },
        { kind: 'events', events: command.slice(0, 1) },
        { kind: 'checkpoint', point: { commit: 5, prepare: 5 } },
        new Error('dropped'),
      ],
      [{ kind: 'events', events: command }],
    );
    const { items } = await follow(store, 'start', (commands) => commands.length === 1);
    expect(items.filter(({ kind }) => kind === 'checkpoint')).toHaveLength(1);
    expect(startPoints).toEqual(['start', { commit: 4, prepare: 0 }]);
  });

  it('continues when a subscription just ends, and stops when aborted', async () => {
    const { store, startPoints } = scripted([], [{ kind: 'caught_up' }]);
    const { items } = await follow(store, 'start', (_, item) => item.kind === 'caught_up');
    expect(items.map(({ kind }) => kind)).toEqual(['dropped', 'caught_up']);
    expect(startPoints).toHaveLength(2);
  });
});

describe('readWholeLog', () => {
  const read = async (script: readonly LogItem[]): Promise<number> => {
    const { store } = scripted(script);
    const { signal } = new AbortController();
    let commands = 0;
    for await (const some of readWholeLog(store, { streams: [streams.fleet], after: 'start', signal })) {
      commands += some.length;
    }
    return commands;
  };

  it('waits for the rest of a command that the end of the log was told in', async () => {
    const command = recorded(3, 1);
    const rest: readonly LogItem[] = [{ kind: 'caught_up' }, { kind: 'events', events: command.slice(2) }];
    const begin = { kind: 'events', events: [...recorded(1, 0), ...command.slice(0, 2)] } as const;
    expect(await read([begin, ...rest])).toBe(2);
  });

  it.each<[string, readonly LogItem[], string]>([
    [
      'ends in the middle of a command',
      [{ kind: 'events', events: recorded(2, 0).slice(0, 1) }, { kind: 'caught_up' }],
      'the log ends in the middle of a command',
    ],
    ['falls silent', [{ kind: 'events', events: recorded(1, 0) }], 'the event store has sent nothing for 60 s'],
  ])('gives up on a log that %s', async (_, script, message) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const reading = expect(read(script)).rejects.toThrow(message);
      await vi.advanceTimersByTimeAsync(giveUpMs);
      await reading;
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('createCommandAssembler', () => {
  it('holds back the events of a command until its last one', () => {
    const assembler = createCommandAssembler();
    const events = [...recorded(2, 0), ...recorded(3, 2)];
    expect(assembler.add(events.slice(0, 4))).toHaveLength(1);
    expect(assembler.pending()).toBe(true);
    expect(assembler.add(events.slice(4))).toHaveLength(1);
    expect(assembler.pending()).toBe(false);
  });
});
