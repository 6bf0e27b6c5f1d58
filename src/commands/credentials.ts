/**
 * The handlers of credentials: each new private key is sealed before its command is decided.
 * How keys and certificates are made and read is in `credential-keys.ts`, the rules are in `src/domain/credential`.
 * Implements `docs/contract/rest.md#credentials`.
 */
import type { CredentialState } from '../domain/credential/credential.js';
import { credentialKey, noFields } from '../domain/credential/credential.js';
import type { FleetCommand } from '../domain/fleet/resources.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { Clock } from '../kernel/clock.js';
import { streams } from '../kernel/event.js';
import type { Ids } from '../kernel/ids.js';
import type { Keyring } from '../security/keyring.js';
import type { SealedValue } from '../security/sealing.js';
import type { KeyMaterial } from './credential-keys.js';
import { keyMaterial } from './credential-keys.js';
import type { CommandHandlers, CredentialChanges } from './handlers-port.js';
import type { CommandContext, CommandOutcome, Gateway } from './port.js';
import { lifecycleHandlers, present } from './resources.js';

export interface CredentialHandlerOptions {
  readonly gateway: Gateway<Fleet, FleetCommand>;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly ids: Ids;
}

export function createCredentialHandlers(options: CredentialHandlerOptions): CommandHandlers['credentials'] {
  const { gateway, keyring, clock, ids } = options;
  const { remove } = lifecycleHandlers('credential', gateway, ids);

  function seal(id: string, { privateKey }: KeyMaterial): SealedValue | null {
    if (privateKey === undefined) return null;
    const sealed = keyring.seal(privateKey, { stream: streams.fleet, resourceId: id, field: 'private_key' });
    privateKey.fill(0);
    return sealed;
  }

  const run = (id: string, command: FleetCommand, context: CommandContext): Promise<CommandOutcome<CredentialState>> =>
    gateway.execute(command, context, (fleet) => present(fleet.get(credentialKey, id)));

  return {
    remove,
    async create(context, request) {
      const id = ids.next();
      const { name, key_type, ...given } = request;
      const wanted: CredentialChanges = given;
      const asked = key_type === 'x25519' ? { private_key: wanted.private_key ?? null } : wanted;
      const material = await keyMaterial(asked, clock.now());
      const sealed = seal(id, material);
      const definition = {
        ...noFields,
        name,
        key_type,
        ...realityFields(wanted),
        ...material.fields,
        private_key: sealed,
      };
      return run(id, { type: 'CreateCredential', id, ...definition }, context);
    },
    async update(context, id, ifMatch, changes) {
      const material = await keyMaterial(changes, clock.now());
      const sealed = seal(id, material);
      const definition = {
        ...realityFields(changes),
        ...material.fields,
        ...(sealed === null ? {} : { private_key: sealed }),
      };
      return run(id, { type: 'UpdateCredential', id, ifMatch, name: changes.name, ...definition }, context);
    },
  };
}

/** The fields that need no work before a command is decided, without absent ones. */
function realityFields(changes: CredentialChanges) {
  const { x25519_credential_id, server_names, short_ids, target_host, target_port } = changes;
  return {
    ...(x25519_credential_id === undefined ? {} : { x25519_credential_id }),
    ...(server_names === undefined ? {} : { server_names }),
    ...(short_ids === undefined ? {} : { short_ids }),
    ...(target_host === undefined ? {} : { target_host }),
    ...(target_port === undefined ? {} : { target_port }),
  };
}
