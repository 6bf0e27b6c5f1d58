/**
 * The identity keys that the service answers under: one, or two while it is rotated. A PSK names the one that it carries.
 * `service-identity/` decides about them. Implements `docs/contract/rollouts.md#guided-rotation`.
 */
import type { FleetView, SingletonKey } from '../resource/fleet-view.js';
import type { SealedSecret } from '../secret/sealed.js';

/** A key that a rotation has made. */
export interface ServiceKey {
  /** X25519, base64url. */
  readonly static_public: string;
  /** Sealed with the stream, the id `identity` and the field `static_private` as associated data. */
  readonly static_private: SealedSecret;
  /** RFC 3339. */
  readonly since: string;
}

export interface ServedKeys {
  /** Null for the first one, which `svc-service` holds. */
  readonly current: ServiceKey | null;
  /** The second one, which new PSKs carry; null while there is none. */
  readonly next: ServiceKey | null;
}

/** The place, apart from the stream, that a key's private half is sealed for. */
export const servedKeyPlace = { resourceId: 'identity', field: 'static_private' } as const;

const servedKeysKey: SingletonKey<ServedKeys> = { singleton: 'identity' };

export const servedKeys = (fleet: Pick<FleetView, 'singleton'>): ServedKeys => fleet.singleton(servedKeysKey);

/** The key that new PSKs carry; undefined for the first one. */
export const newestKey = ({ current, next }: ServedKeys): ServiceKey | undefined => next ?? current ?? undefined;

/** Whether new PSKs carry this key. @param name its public half; undefined for the first one */
export const isNewestKey = (keys: ServedKeys, name: string | undefined): boolean =>
  newestKey(keys)?.static_public === name;

/** Whether sessions under this key succeed. @param name as above */
export const isServedKey = (keys: ServedKeys, name: string | undefined): boolean =>
  keys.current?.static_public === name || isNewestKey(keys, name);
