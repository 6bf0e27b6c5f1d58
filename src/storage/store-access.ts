/**
 * Errors in accessing an external store that waiting does not cure: a wrong password, missing permissions, a bad
 * certificate. A store that is merely away is not one of them. See `docs/reference/faults.md#faults`.
 */
import { ServiceError } from '../kernel/errors.js';

/**
 * The message is a sentence that says what is wrong and what to do, without secrets and addresses. The service keeps
 * trying, because the correction may happen on the store's side.
 */
export class StoreAccessError extends ServiceError {
  constructor(sentence: string, cause?: unknown) {
    super('unavailable', sentence, cause === undefined ? {} : { cause });
    this.name = 'StoreAccessError';
  }
}

/** A field of anything thrown. */
export const field = (error: unknown, name: string): unknown =>
  typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[name] : undefined;

/** Codes and messages of an error and of its causes. */
export function textsOf(error: unknown): string {
  const texts: string[] = [];
  for (let at = error, depth = 0; at !== undefined && at !== null && depth < 6; at = field(at, 'cause'), depth += 1) {
    texts.push(String(field(at, 'code') ?? ''), String(field(at, 'message') ?? (typeof at === 'string' ? at : '')));
  }
  return texts.join(' ');
}

/** The wordings of Linux, LMDB, MongoDB and EventStoreDB; a file that may not grow counts as well. */
const diskFull = /ENOSPC|EDQUOT|EFBIG|no space left|not enough space|disk full|file too large/i;

/** Whether a failure, by its text, comes from a full disk. */
export const isDiskFull = (error: unknown): boolean => diskFull.test(textsOf(error));

/** The error of a write that certainly failed. @param store `event store` */
export const notWritten = (store: string, cause: string): ServiceError =>
  new ServiceError(
    'unavailable',
    isDiskFull(cause) ? `The disk of the ${store} is full.` : `The ${store} cannot be written now: ${cause}.`,
    { cause },
  );

/** Why a store cannot be used now, as a clause. @param store `event store` */
export const awayBecause = (store: string, cause: unknown): string =>
  isDiskFull(cause) ? `the disk of the ${store} is full` : `the ${store} is out of reach`;

interface Store {
  /** `the event store` */
  readonly name: string;
  /** The variable that holds its URL. */
  readonly variable: string;
}

/** The access error behind a failed TLS handshake or certificate check; undefined for any other error. */
export function tlsError(error: unknown, { name, variable }: Store): StoreAccessError | undefined {
  const text = textsOf(error);
  const because = (sentence: string): StoreAccessError => new StoreAccessError(sentence, error);
  if (/ALTNAME|altnames/.test(text)) {
    return because(`the certificate of ${name} is for another name: use a name from the certificate in ${variable}`);
  }
  if (/CERT_HAS_EXPIRED|CERT_NOT_YET_VALID|certificate has expired|certificate is not yet valid/i.test(text)) {
    return because(`the certificate of ${name} is not valid at this time: renew it, or correct the clock`);
  }
  if (/SELF_SIGNED|UNABLE_TO_|CERT_UNTRUSTED|self[- ]signed|unable to (verify|get)|certificate signed by/i.test(text)) {
    return because(
      `the certificate of ${name} is not signed by a trusted authority: name the authority's certificate with tlsCAFile in ${variable}`,
    );
  }
  if (/wrong version number/i.test(text)) {
    return because(`${name} answers without TLS: add tls=false to ${variable}, or give the store a certificate`);
  }
  if (/alert certificate|certificate required|handshake failure|alert unknown ca|alert bad certificate/i.test(text)) {
    return because(`${name} refuses the TLS handshake: check the client certificate in ${variable}`);
  }
  return undefined;
}
