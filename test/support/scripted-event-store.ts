/**
 * Wraps a real store. Appends follow a script of the test, one step per call, and then the real store; all are
 * recorded. For random faults instead of a script, see `hostile.ts`.
 */
import { ServiceError } from '../../src/kernel/errors.js';
import type { ProposedEvent } from '../../src/kernel/event.js';
import type { AppendOutcome, EventStore, ExpectedRevision } from '../../src/storage/event-store.js';

export interface AppendCall {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly ProposedEvent[];
}

/** What one append does; `write` is the real append. */
export type AppendStep = (write: () => Promise<AppendOutcome>, call: AppendCall) => Promise<AppendOutcome>;

const passes: AppendStep = (write) => write();
export const unavailable: AppendStep = async () => ({ kind: 'unavailable', cause: 'scripted' });
/** The store takes nothing into the stream, as without rights, or not these events. */
export const refused =
  (what: 'stream' | 'append'): AppendStep =>
  async () => ({ kind: 'refused', what, cause: 'scripted: refused' });
export const notWritten: AppendStep = async () => ({ kind: 'unknown', cause: 'scripted: not written' });
/** Written, but the answer is lost. */
export const answerLost: AppendStep = async (write) => {
  await write();
  return { kind: 'unknown', cause: 'scripted: answer lost' };
};
/** Runs something just before the real append. */
export const after =
  (first: () => Promise<unknown>, step: AppendStep = passes): AppendStep =>
  async (write, call) => {
    await first();
    return step(write, call);
  };

export interface ScriptedEventStore extends EventStore {
  /** Every append call, whatever its outcome. */
  readonly appends: AppendCall[];
  /** Sets the steps of the next appends. */
  script(...steps: readonly AppendStep[]): void;
  /** Sets the step of every append without a script; undefined for the real append. */
  always(step: AppendStep | undefined): void;
  /** Lets the next `count` reads fail at their first event. */
  failReads(count: number): void;
}

export function scriptedEventStore(inner: EventStore): ScriptedEventStore {
  const appends: AppendCall[] = [];
  const steps: AppendStep[] = [];
  let standing: AppendStep | undefined;
  let failing = 0;

  async function* read(
    ...[stream, options]: Parameters<EventStore['read']>
  ): ReturnType<EventStore['read']> & AsyncGenerator {
    if (failing > 0) {
      failing -= 1;
      throw new ServiceError('unavailable', 'scripted: the log cannot be read');
    }
    yield* inner.read(stream, options);
  }

  return {
    appends,
    script: (...more) => void steps.push(...more),
    always(step) {
      standing = step;
    },
    failReads(count) {
      failing = count;
    },
    append(stream, expected, events) {
      const call = { stream, expected, events };
      appends.push(call);
      return (steps.shift() ?? standing ?? passes)(() => inner.append(stream, expected, events), call);
    },
    read,
    subscribe: (options) => inner.subscribe(options),
    setRetention: (stream, retention) => inner.setRetention(stream, retention),
    loadFoldCheckpoint: (name) => inner.loadFoldCheckpoint(name),
    saveFoldCheckpoint: (name, checkpoint) => inner.saveFoldCheckpoint(name, checkpoint),
    starved: () => inner.starved(),
    headPosition: () => inner.headPosition(),
    time: () => inner.time(),
    ping: () => inner.ping(),
    close: () => inner.close(),
  };
}
