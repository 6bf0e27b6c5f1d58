/** `docs/contract/domain.md#audit-and-revert`: reverts in random histories, compared with a model that knows only fields. */
import { runSync } from '../../src/kernel/pieces.js';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fleetAggregate } from '../../src/commands/aggregate.js';
import { isAboutSeveral } from '../../src/domain/audit/describe.js';
import { draftFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { decideFleet } from '../../src/domain/fleet/decide.js';
import { resourceOf, type FleetCommand } from '../../src/domain/fleet/resources.js';
import { undoOf } from '../../src/domain/revert/history.js';
import { ServiceError } from '../../src/kernel/errors.js';
import type { Actor, RecordedCommand } from '../../src/kernel/event.js';
import { dealer, type Dealer } from '../support/dealer.js';
import { foldOf, recorded } from '../support/fleet.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { fleetInstallation } from '../support/fleet-installation.js';
import { commandOf, type Move } from '../support/fleet-histories.js';
import { fieldsOf, RevertModel, type Entry } from '../support/revert-model.js';

const operator: Actor = { type: 'user', id: 'operator', name: 'operator' };
const agent: Actor = { type: 'agent', id: 'agent', name: 'agent' };
const byAgents: ReadonlySet<string> = new Set(['ReportNodeAddress', 'RaiseNodeGeneration', 'EndCredentialOverlap']);

/** Why commands of a type can never be reverted. */
const never: { readonly [type: string]: string } = {
  IssueNodePsk: 'a PSK can be replaced',
  RefreshNodeConfig: 'a refresh changes nothing',
  ReportNodeAddress: 'a fact reported by the agent',
  RaiseNodeGeneration: 'a fact reported by the agent',
  EndCredentialOverlap: 'it ends the overlap',
  RaiseCompilerVersion: 'the compiler version follows',
  LowerCompilerVersion: 'the compiler version follows',
};
const keyFields = ['public_key', 'private_key', 'certificate'];

/** Few resources that are edited often: reverts meet later work. */
const weights: { readonly [K in Move['kind']]?: number } = {
  createNode: 3,
  updateNode: 12,
  labelNodes: 8,
  deleteNode: 2,
  issuePsk: 1,
  reportAddress: 2,
  createUpstream: 2,
  updateUpstream: 10,
  deleteUpstream: 1,
  createChain: 4,
  editChain: 10,
  renameChain: 3,
  switchChain: 4,
  deployChain: 10,
  deleteChain: 2,
  createRoute: 2,
  editRoute: 4,
  deleteRoute: 1,
  savePolicy: 14,
  deletePolicy: 8,
  createCredential: 4,
  editCredential: 6,
  deleteCredential: 1,
  createNetwork: 2,
  editNetwork: 4,
  deleteNetwork: 1,
  settings: 8,
  overrides: 10,
  raiseCompiler: 1,
};
const kinds = Object.entries(weights).flatMap(([kind, weight]) =>
  Array<Move['kind']>(weight).fill(kind as Move['kind']),
);
const editing = fc.array(fc.record({ kind: fc.constantFrom(...kinds), seed: fc.nat(0x7fff_ffff) }), {
  minLength: 60,
  maxLength: 90,
  size: 'max',
});

const outcomes = { accepted: 0, conflict: 0, gone: 0, laterWork: 0, again: 0, never: 0, exists: 0, rules: 0 };

it('a revert restores exactly what its entry changed, or is refused with the right culprits', async () => {
  await fc.assert(
    fc.asyncProperty(editing, fc.array(fc.nat(0x7fff_ffff), { minLength: 90, maxLength: 90 }), async (moves, seeds) => {
      const { fleet, log, write, handlers } = fleetInstallation();
      const model = new RevertModel(fieldsOf(fleet));
      const subjectsOf = ({ events }: RecordedCommand): readonly string[] => {
        const about = isAboutSeveral(events[0]) ? events : [events[0]];
        return about.map(resourceOf).map(({ type, id }) => (type === 'service' ? 'service' : `${type}/${id}`));
      };

      const revertOne = async (seed: number): Promise<void> => {
        const deal = dealer(seed);
        if (model.entries.length === 0) return;
        const entry = deal.of(candidates(deal, model));
        const predicted = model.prediction(entry);
        const command = log.find(({ events: [first] }) => first.metadata.command.id === entry.id);
        if (command === undefined) throw new Error('the model knows an entry that the log does not hold');
        // Dumping costs more than reverting.
        const dump = deal.chance(15) ? () => dumpFleet(fleet) : () => '';
        const before = dump();
        const preview = await handlers.preview(command).catch((error: ServiceError) => error);
        expect(dump()).toBe(before);
        const outcome = await handlers
          .revert({ actor: operator, requestId: 'test' }, command)
          .catch((error: ServiceError) => error);
        if (outcome instanceof ServiceError) {
          expect(outcome.code).toBe('conflict');
          expect(preview).toEqual(outcome);
          expect(dump()).toBe(before);
          if (predicted.kind === 'refused') {
            for (const part of predicted.says) expect(outcome.message).toContain(part);
            count(outcome.message);
          } else {
            // An ordinary rule is in the way: the command alone is refused with the same sentence.
            expect(plainRefusal(fleet, command)).toBe(outcome.message);
            outcomes.rules += 1;
          }
          return;
        }
        expect([entry, predicted.kind]).toEqual([entry, 'accepted']);
        if (predicted.kind !== 'accepted' || outcome.kind !== 'done') return;
        expect(preview).not.toBeInstanceOf(ServiceError);
        const after = fieldsOf(fleet);
        expect(after).toEqual(predicted.fields);
        model.accepted(
          {
            id: outcome.commandId,
            subjects: entry.subjects,
            isWork: false,
            never: undefined,
            reverts: entry.id,
            redeploys: outcome.events[0]?.type === 'ChainDeployed',
          },
          after,
        );
        outcomes.accepted += 1;
      };

      for (const [index, move] of moves.entries()) {
        const command = commandOf(fleet, move, index);
        const decision = command === undefined ? undefined : decideFleet(fleet, command);
        if (command !== undefined && decision?.ok === true && decision.value.length > 0) {
          const byAgent = byAgents.has(command.type);
          const written = write(decision.value, { actor: byAgent ? agent : operator });
          const changed = Reflect.get(written.events[0].data, 'changes') as object | undefined;
          const rotated = command.type === 'UpdateCredential' && keyFields.some((field) => field in (changed ?? {}));
          model.accepted(
            {
              id: written.events[0].metadata.command.id,
              subjects: subjectsOf(written),
              isWork: !byAgent && never[command.type] === undefined,
              never: rotated ? 'a key or certificate can be replaced' : never[command.type],
              redeploys: command.type === 'DeployChain',
            },
            fieldsOf(fleet),
          );
        }
        if (index % 3 === 2) await revertOne(seeds[index] ?? 0);
      }
      expect(dumpFleet(foldOf(log))).toBe(dumpFleet(fleet));
    }),
    { numRuns: 20, endOnFailure: true },
  );
  // The histories held every kind of outcome.
  for (const [kind, times] of Object.entries(outcomes)) expect([kind, times > 0]).toEqual([kind, true]);
});

/** The newest entries are most often revertible; deletes and settings are rare, and say most. */
function candidates(deal: Dealer, model: RevertModel): readonly Entry[] {
  const { entries } = model;
  const rare = entries.filter(
    ({ kind, subjects: [subject] }) => kind === 'deleted' || subject?.startsWith('connectivity/'),
  );
  const among = rare.length > 0 && deal.chance(35) ? rare : deal.chance(30) ? entries.slice(-4) : entries;
  // Most entries are already reverted after a while.
  const standing = among.filter(({ id }) => !model.isReverted(id));
  return standing.length > 0 && deal.chance(85) ? standing : among;
}

function count(message: string): void {
  if (message.includes('is now')) outcomes.conflict += 1;
  else if (message.includes('is gone')) outcomes.gone += 1;
  else if (message.includes('later work')) outcomes.laterWork += 1;
  else if (message.includes('was reverted by')) outcomes.again += 1;
  else if (message.includes('exists again')) outcomes.exists += 1;
  else outcomes.never += 1;
}

function plainRefusal(fleet: Fleet, { events }: RecordedCommand): string | undefined {
  const undo = undoOf(events[0]);
  if (undo === undefined) return undefined;
  const command =
    undo.kind === 'restore'
      ? undo.command({ created_at: '', version: 1 })
      : undo.kind === 'change'
        ? undo.command(fleet)
        : undo.command;
  const decision = decideFleet(fleet, command as FleetCommand);
  if (!decision.ok) return decision.error.message;
  const { state: draft } = draftFleet(fleet);
  return runSync(fleetAggregate.apply(draft, recorded(draft, decision.value))).refusal?.message;
}
