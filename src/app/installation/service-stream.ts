/**
 * Reads and writes `svc-service`, the stream of an installation's keys, a few events a day at most. Every reader proves
 * its log chain from the first event. Implements `docs/log-chain.md`.
 */
import { propose } from '../../commands/proposal.js';
import { systemContext } from '../../commands/system.js';
import { tuning } from '../../commands/tuning.js';
import { readCommand } from '../../domain/log/upcast.js';
import type { LogHeadsRecorded } from '../../domain/log-chain/heads.js';
import type { ServiceEvent } from '../../domain/service/identity.js';
import { applyService, emptyService, type ServiceState } from '../../domain/service/state.js';
import { sleep } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import { streams, type RecordedCommand } from '../../kernel/event.js';
import type { Ids } from '../../kernel/ids.js';
import { backoff, storeRetry } from '../../kernel/retry.js';
import type { LogChain } from '../../security/log-chain/log-chain.js';
import type { EventStore } from '../../storage/event-store.js';
import { commandsAfter } from '../../storage/follow.js';

export interface ServiceStreamOptions {
  readonly eventStore: EventStore;
  readonly logChain: Pick<LogChain, 'link' | 'follow'>;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** The state after a command from the log. @throws BrokenChainError, UnknownEventError */
export function followService(
  state: ServiceState,
  command: RecordedCommand,
  logChain: Pick<LogChain, 'follow'>,
): ServiceState {
  const head = logChain.follow(state.logChain, command);
  return applyService(state, readCommand(command), head);
}

/** @throws BrokenChainError, BrokenLogError, UnknownEventError, ServiceError `unavailable` */
export async function readService({
  eventStore,
  logChain,
}: Pick<ServiceStreamOptions, 'eventStore' | 'logChain'>): Promise<ServiceState> {
  let state = emptyService;
  for await (const commands of commandsAfter(eventStore, streams.service, -1)) {
    for (const command of commands) state = followService(state, command, logChain);
  }
  return state;
}

/**
 * Writes an event and reads the stream back: the answer of an append may be lost, and another instance may have written
 * first.
 * @param who the system actor that writes
 * @param next the event to write in a state; undefined when nothing is left to write, as after that event
 * @returns the state that needs no event
 * @throws what `readService` and `next` throw, ServiceError `unavailable`
 */
export async function writeService(
  options: ServiceStreamOptions,
  who: string,
  next: (state: ServiceState) => ServiceEvent | LogHeadsRecorded | undefined,
): Promise<ServiceState> {
  const { eventStore, logChain, clock, ids } = options;
  for (let tries = 0; tries < tuning.gatewayAttempts; tries += 1) {
    const state = await readService(options);
    const event = next(state);
    if (event === undefined) return state;
    const { events } = propose([event], systemContext(who), clock, ids, (own) => ({
      link: logChain.link(state.logChain, streams.service, own).link,
    }));
    await eventStore.append(streams.service, state.revision < 0 ? 'no_stream' : state.revision, events);
    if (tries > 0) await sleep(backoff(storeRetry, tries - 1));
  }
  throw new ServiceError('unavailable', `the event store did not take an event of ${streams.service}`);
}
