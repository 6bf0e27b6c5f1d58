/** All changes that REST can make, on the two gateways. Handlers of accounts and webhooks come ready-made. */
import { createProfileRevertHandlers } from '../accounts/handlers.js';
import type { DecidedOnFleet } from '../commands/aggregate.js';
import { createCredentialHandlers } from '../commands/credentials.js';
import { createFleetFileHandlers } from '../commands/fleet-file.js';
import type { CommandHandlers } from '../commands/handlers-port.js';
import { createNodeHandlers } from '../commands/nodes.js';
import type { Gateway, ProjectionWait } from '../commands/port.js';
import {
  createChainHandlers,
  createPolicyHandlers,
  createResourceHandlers,
  createSettingsHandlers,
} from '../commands/resources.js';
import { createRevertHandlers, type AuditTrail } from '../commands/revert.js';
import type { Accounts } from '../domain/accounts/accounts.js';
import type { AccountCommand } from '../domain/accounts/user.js';
import type { Fleet } from '../domain/fleet/fleet.js';
import type { Clock } from '../kernel/clock.js';
import type { Ids } from '../kernel/ids.js';
import type { Keyring } from '../security/keyring.js';

export interface CommandHandlerParts {
  readonly fleet: Gateway<Fleet, DecidedOnFleet>;
  readonly accounts: Gateway<Accounts, AccountCommand>;
  readonly accountHandlers: CommandHandlers['accounts'];
  readonly webhookHandlers: CommandHandlers['webhooks'];
  /** The committed fleet. */
  readonly committed: () => Fleet;
  readonly keyring: Keyring;
  /** 32 bytes, part of every PSK. */
  readonly servicePublic: Uint8Array;
  /** Reverts wait for it before they read the audit. */
  readonly projections: ProjectionWait;
  readonly audit: AuditTrail;
  readonly clock: Clock;
  readonly ids: Ids;
}

export function createCommandHandlers(parts: CommandHandlerParts): CommandHandlers {
  const { fleet, accounts, accountHandlers, webhookHandlers, keyring, servicePublic, projections, audit } = parts;
  const { clock, ids, committed } = parts;
  const reverts = createRevertHandlers({ gateway: fleet, fleet: committed, projections, audit });
  return {
    nodes: createNodeHandlers({ gateway: fleet, keyring, servicePublic, clock, ids }),
    credentials: createCredentialHandlers({ gateway: fleet, keyring, clock, ids }),
    resources: createResourceHandlers(fleet, ids),
    chains: createChainHandlers(fleet),
    policies: createPolicyHandlers(fleet),
    settings: createSettingsHandlers(fleet),
    fleetFile: createFleetFileHandlers({
      gateway: fleet,
      fleet: committed,
      keyring,
      servicePublic,
      projections,
      audit,
      reverts,
      clock,
      ids,
    }),
    reverts: {
      fleet: reverts,
      accounts: createProfileRevertHandlers({ gateway: accounts, projections, audit }),
    },
    accounts: accountHandlers,
    webhooks: webhookHandlers,
  };
}
