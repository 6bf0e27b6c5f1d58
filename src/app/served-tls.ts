/**
 * The certificate of REST while the service runs: its files are read again on SIGHUP and every twenty seconds, by their
 * content, so that no change is missed, whatever the file system reports. A pair that does not match, or that clients
 * would refuse now, is refused, and the former one stays. `config/tls-files.ts` reads them. Implements
 * `docs/contract/joining.md#certificates-of-rest`.
 */
import { startLoop } from '../kernel/background.js';
import { timestamp, type Clock } from '../kernel/clock.js';
import { createListeners } from '../kernel/listeners.js';
import type { Logger } from '../kernel/logger.js';
import type { ServedTls } from '../transport/rest/deps.js';
import type { Config } from './config/config.js';
import { readTls, type TlsFiles } from './config/tls-files.js';

/** A change is served within a minute, even if two looks are needed because the files were replaced one by one. */
const lookEveryMs = 20_000;

export interface WatchedTls extends ServedTls {
  /** Reads the files now, and logs the outcome. Never rejects. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

/** @throws ConfigError when the files cannot be used at the start */
export async function watchTls(
  files: NonNullable<Config['http']['tls']>,
  { logger, clock, everyMs = lookEveryMs }: { logger: Logger; clock: Pick<Clock, 'now'>; everyMs?: number },
): Promise<WatchedTls> {
  let served = await readTls(files);
  /** Why the files were last refused; logged once. */
  let refusal: string | undefined;
  const complain = (error: unknown): void =>
    logger.error({ error: messageOf(error) }, 'REST keeps its certificate: the files cannot be used');
  const changes = createListeners<TlsFiles>(complain);

  async function look(isAsked: boolean): Promise<void> {
    try {
      const read = await readTls(files);
      const isSame = read.cert === served.cert && read.key === served.key;
      if (!isSame) {
        assertValid(read, files.certFile, clock.now());
        served = read;
        changes.tell(read);
      }
      if (!isSame || isAsked)
        logger.info(
          { not_after: timestamp(read.validTo) },
          isSame ? 'the certificate of REST has not changed' : 'REST serves a new certificate',
        );
      refusal = undefined;
    } catch (error) {
      if (isAsked || messageOf(error) !== refusal) complain(error);
      refusal = messageOf(error);
    }
  }

  // One look at a time: an older read must not replace a newer one.
  let looks = Promise.resolve();
  const inTurn = (isAsked: boolean): Promise<void> => (looks = looks.then(() => look(isAsked)));
  const loop = startLoop(everyMs, () => inTurn(false), complain);
  return {
    current: () => served,
    onChange: changes.add,
    reload: () => inTurn(true),
    close: () => loop.close(),
  };
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** At a start a certificate that has ended is served all the same; one that works is not replaced by it. */
function assertValid({ validFrom, validTo }: TlsFiles, file: string, now: number): void {
  if (now > validTo) throw new Error(`${file}: the certificate has ended at ${timestamp(validTo)}`);
  if (now < validFrom) throw new Error(`${file}: the certificate is not valid before ${timestamp(validFrom)}`);
}
