/** The primary's clock, which `hello` returns. Leases use it (`leases.ts`), and instances compare theirs with it. */
import type { Db } from 'mongodb';
import type { StoreTime } from '../event-store.js';

/** Milliseconds since the epoch. */
export async function serverTime(db: Db): Promise<number> {
  const { localTime } = await db.command({ hello: 1 });
  if (!(localTime instanceof Date)) throw new Error('the server does not report its time');
  return localTime.getTime();
}

/** The primary's time when its answer arrives; assumes that the way back took half of the round trip. */
export async function timeOfServer(db: Db): Promise<StoreTime> {
  const sent = performance.now();
  const at = await serverTime(db);
  return { kind: 'clock', at: at + (performance.now() - sent) / 2 };
}
