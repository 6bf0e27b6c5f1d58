/**
 * The server's clock, from the `date` header of its answers, to the second. Gossip is not used: a server without other
 * nodes renews its timestamp only when its role changes. Depends on one internal of the client package, its channel.
 */
import { Client, credentials, type Channel, type Metadata, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { timedOut, withDeadline } from '../../kernel/background.js';
import type { Clock } from '../../kernel/clock.js';
import { ServiceError } from '../../kernel/errors.js';
import type { StoreTime } from '../event-store.js';
import type { Connection, Lease } from './connection.js';
import { failureText } from './failure.js';

/** Changes nothing, and every server answers it. */
const method = '/event_store.client.gossip.Gossip/Read';
/** The header is precise to the second; on average, half of the second has passed. */
const halfSecondMs = 500;

const asIs = (bytes: Buffer): Buffer => bytes;

const channelOf = ({ client }: Lease): Promise<Channel> =>
  (client as unknown as { readonly getChannel: () => Promise<Channel> }).getChannel();

/** The date of one answer, in milliseconds since the epoch; undefined if it has none. @throws the call's error */
function dateOfAnswer(channel: Channel, answerMs: number): Promise<number | undefined> {
  // Never closed: that would close the client package's channel.
  const caller = new Client('unused', credentials.createInsecure(), { channelOverride: channel });
  return new Promise((resolve, reject) => {
    const dateOf = (headers: Metadata | undefined): number | undefined => {
      const at = Date.parse(String(headers?.get('date')[0]));
      return Number.isNaN(at) ? undefined : at;
    };
    let date: number | undefined;
    const done = (error: GrpcError | null): void => {
      date ??= dateOf(error?.metadata);
      if (error === null || date !== undefined) resolve(date);
      else reject(error);
    };
    const call = caller.makeUnaryRequest(
      method,
      asIs,
      asIs,
      Buffer.alloc(0),
      { deadline: Date.now() + answerMs },
      done,
    );
    call.on('metadata', (headers: Metadata) => {
      date = dateOf(headers);
    });
  });
}

/** The server's current time; undefined when it cannot be determined. @throws ServiceError `unavailable` */
export async function readServerTime(
  connection: Connection,
  clock: Pick<Clock, 'monotonic'>,
): Promise<StoreTime | undefined> {
  const { serverTimeMs: answerMs } = connection.tuning;
  const asking = async (): Promise<StoreTime | undefined> => {
    const channel = await channelOf(await connection.lease());
    const sent = clock.monotonic();
    const date = await dateOfAnswer(channel, answerMs);
    if (date === undefined) return undefined;
    return { kind: 'clock', at: date + halfSecondMs + (clock.monotonic() - sent) / 2 };
  };
  try {
    const time = await withDeadline(asking(), answerMs);
    if (time !== timedOut) return time;
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError('unavailable', `The event store does not report its time: ${failureText(error)}.`);
  }
  throw new ServiceError('unavailable', 'The event store does not report its time.');
}
