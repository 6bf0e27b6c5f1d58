/**
 * Documents carried out on random fleets (`docs/contract/automation.md#the-fleet-as-a-file`): the result is what the document
 * says, however many commands it takes; it can be taken back; and what is changed by hand afterwards is drift.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideApply } from '../../src/domain/fleet-file/apply.js';
import { stepsOf } from '../../src/domain/fleet-file/applied.js';
import { carryOut, type CarriedOut, type Step } from '../../src/domain/fleet-file/carry-out.js';
import type { Comparison } from '../../src/domain/fleet-file/compare.js';
import { driftOf, setsOf } from '../../src/domain/fleet-file/drift.js';
import { partsOf } from '../../src/domain/fleet-file/parts.js';
import { decideRelease } from '../../src/domain/fleet-file/release.js';
import { decideRevertOf } from '../../src/domain/fleet-file/revert.js';
import { runSync } from '../../src/kernel/pieces.js';
import { applyCommand } from '../../src/domain/fleet/apply.js';
import { captureFleet, encodeFleet, restoreFleet } from '../../src/domain/fleet/checkpoint.js';
import { emptyFleet, type Fleet } from '../../src/domain/fleet/fleet.js';
import { draftAfter, hypothetical } from '../../src/domain/fleet/hypothetical.js';
import { resources, resourceTypes, type AnyState, type FleetEvent } from '../../src/domain/fleet/resources.js';
import { ownerOf, splitOwner } from '../../src/domain/references/references.js';
import { subjectsOf, versionOfSubject } from '../../src/domain/revert/decide.js';
import type { RecordedCommand } from '../../src/kernel/event.js';
import { comparedWith, exportedFrom } from '../support/fleet-file.js';
import { dumpFleet } from '../support/fleet-dump.js';
import { histories } from '../support/fleet-histories.js';
import { play } from '../support/fleet-play.js';

const set = 'set';

/** A command with these events stands in the log. */
function written(fleet: Fleet, id: string, events: readonly FleetEvent[], revertOf?: string): RecordedCommand {
  const {
    stream,
    events: [first, ...rest],
  } = hypothetical(fleet, events, revertOf);
  const named = (event: typeof first): typeof first => ({
    ...event,
    metadata: { ...event.metadata, command: { ...event.metadata.command, id } },
  });
  const command: RecordedCommand = { stream, events: [named(first), ...rest.map(named)] };
  applyCommand(fleet, command);
  return command;
}

const applying = { apply_id: '', name: set, document_sha256: '', part: 1, parts: 1 };

const carriedOut = (fleet: Fleet, { changes }: Comparison): CarriedOut =>
  runSync(carryOut(draftAfter(fleet, [{ type: 'FleetApplied', data: applying }]), changes));

function applied(
  fleet: Fleet,
  { versions, scope }: Comparison,
  steps: readonly Step[],
  id = 'apply',
  name = set,
): RecordedCommand {
  const changes = steps.map(({ change }) => change);
  const decision = runSync(
    decideApply(fleet, {
      type: 'ApplyDocument',
      applied: { ...applying, ...scope, apply_id: id, name },
      changes,
      versions,
    }),
  );
  if (!decision.ok) throw new Error(decision.error.message);
  return written(fleet, id, decision.value);
}

/** The document of a random fleet, as that of the set. */
const documentOf = (fleet: Fleet): string => exportedFrom(fleet, null).replace('set: null', `set: ${set}`);

const randomDocument = histories(30).map((moves) => documentOf(play(moves).fleet));

/** Chains of one node that trade listeners, come and go: little of it holds one after the other. */
const tradingDocument = fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 1 }).map((chains) => {
  const lines = chains.map(
    (name, index) =>
      `  c${name}: {payload: tcp, hops: [{node: n, listen_port: ${443 + index}, outer: tcp, security: raw}], target: {endpoint: "192.0.2.1:80"}, deploy: true}\n`,
  );
  return `svc: 1\nset: ${set}\nnodes: {n: {}}\nchains:\n${lines.join('')}`;
});
const documents = fc.oneof(fc.tuple(randomDocument, randomDocument), {
  weight: 2,
  arbitrary: fc.tuple(tradingDocument, tradingDocument),
});

/** A fleet that the set owns, as a random document describes it; undefined when no request can make it. */
async function ownedFleet(text: string): Promise<Fleet | undefined> {
  const fleet = emptyFleet();
  const comparison = await comparedWith(fleet, text, {});
  const { steps, mistakes, obstacles } = carriedOut(fleet, comparison);
  if (mistakes.length + obstacles.length + comparison.mistakes.length > 0) return undefined;
  applied(fleet, comparison, steps, 'first');
  return fleet;
}

/** Definitions of all resources, by owner. */
const definitions = (fleet: Fleet): ReadonlyMap<string, object> =>
  new Map(
    resourceTypes.flatMap((type) =>
      ([...fleet.tables[type].values()] as unknown as AnyState[]).map((state) => {
        const { fields } = resources[type] as unknown as { readonly fields: readonly string[] };
        const shown = fields.filter(
          (field) => !['private_key', 'public_key', 'certificate', 'certificate_pem'].includes(field),
        );
        return [ownerOf(type, state.id), Object.fromEntries(shown.map((field) => [field, Reflect.get(state, field)]))];
      }),
    ),
  );

const drifted = (fleet: Fleet, of = set) => runSync(driftOf(fleet, of));

/** What the set is, without the order of its resources: a restored policy comes last. */
const shownOf = (fleet: Fleet): readonly string[] => exportedFrom(fleet, set).split('\n').sort();

const copyOf = (fleet: Fleet): Fleet => restoreFleet(Buffer.concat([...encodeFleet(captureFleet(fleet))]));

const seen = { applied: 0, split: 0, drifted: 0 };

describe('a document carried out on a random fleet', () => {
  it('leaves what it says, in one command or in many, and is taken back without a trace', async () => {
    await fc.assert(
      fc.asyncProperty(documents, fc.constantFrom(4_000, 8_000, 16_000), async ([from, text], mostBytes) => {
        fc.pre(!`${from}${text}`.includes('__proto__'));
        const fleet = await ownedFleet(from);
        fc.pre(fleet !== undefined);
        const comparison = await comparedWith(fleet!, text, { prune: true, maxDeletes: 1_000 });
        const outcome = carriedOut(fleet!, comparison);
        fc.pre(
          outcome.mistakes.length +
            outcome.obstacles.length +
            comparison.mistakes.length +
            comparison.obstacles.length ===
            0,
        );
        seen.applied += 1;
        const [base, bases] = [shownOf(fleet!), fleet!.singletons.fleet.value];

        // In as small commands as it may be, one after the other.
        const { parts, obstacles } = runSync(partsOf(fleet!, outcome.steps, mostBytes));
        expect(new Set(parts.flat())).toEqual(new Set(outcome.steps));
        expect(parts.flat().length).toBe(outcome.steps.length);
        const inTurn = copyOf(fleet!);
        if (parts.length > 1) seen.split += 1;
        if (obstacles.length === 0) {
          for (const part of parts) applied(inTurn, { ...comparison, versions: [] }, part);
        }

        const command = applied(fleet!, comparison, outcome.steps);
        expect(stepsOf(command).flatMap((step) => step().changes)).toEqual(
          outcome.steps.flatMap(({ fields }) => fields),
        );
        const again = exportedFrom(fleet!, set);
        if (obstacles.length === 0) expect(shownOf(copyOf(inTurn))).toEqual(shownOf(copyOf(fleet!)));
        expect(await comparedWith(fleet!, again, { prune: true })).toMatchObject({
          changes: [],
          mistakes: [],
          obstacles: [],
        });
        expect(await comparedWith(fleet!, text, { prune: true })).toMatchObject({ mistakes: [], obstacles: [] });
        expect(drifted(fleet!)).toEqual([]);

        fc.pre(outcome.steps.length > 0 && outcome.steps.every(({ final }) => !final));
        const histories = new Map(
          [...subjectsOf(command)].map(([owner, about]) => [
            owner,
            {
              version: versionOfSubject(fleet!, about),
              later: [],
              changedBy: new Map(),
              former: { version: 9, created_at: '' },
            },
          ]),
        );
        const revert = runSync(decideRevertOf(fleet!, { entry: command, histories }));
        if (!revert.ok) throw new Error(revert.error.message);
        written(fleet!, 'revert', revert.value, 'apply');
        expect(shownOf(fleet!)).toEqual(base);
        expect(fleet!.singletons.fleet.value).toEqual(bases);
        expect(drifted(fleet!)).toEqual([]);
      }),
      { numRuns: 25 },
    );
    expect(seen.applied).toBeGreaterThan(5);
    expect(seen.split).toBeGreaterThan(0);
  });

  it('is refused where what holds only together falls into two commands, and names just that', async () => {
    const chain = (name: string, port: number): string =>
      `  ${name}: {payload: tcp, hops: [{node: n, listen_port: ${port}, outer: tcp, security: raw}], target: {endpoint: "192.0.2.1:80"}, deploy: true}\n`;
    const text = (...ports: readonly number[]): string =>
      `svc: 1\nset: ${set}\nnodes: {n: {}}\nchains:\n${ports.map((port, index) => chain(`c${index}`, port)).join('')}`;
    const fleet = await ownedFleet(text(443, 444, 445, 446));
    const { steps } = carriedOut(fleet!, await comparedWith(fleet!, text(447, 445, 444, 448), {}));
    const split = (mostBytes: number) => runSync(partsOf(fleet!, steps, mostBytes));
    const whole = steps.reduce((sum, { events }) => sum + JSON.stringify(events).length + 768 * events.length, 0);
    const shown = (mostBytes: number): readonly string[] =>
      split(mostBytes).parts.map((part) =>
        part.map(({ change: { action, resource } }) => `${action} ${resource.name}`).join(),
      );
    expect(split(2 * whole)).toEqual({ parts: [steps], obstacles: [] });
    // The first of those that swap waits, with its deploy, for the command that has the other one.
    expect(shown(0.55 * whole)).toEqual([
      'update c0,deploy c0',
      'update c1,deploy c1,update c2,deploy c2',
      'update c3,deploy c3',
    ]);
    expect(split(0.55 * whole).obstacles).toEqual([]);
    expect([...new Set(split(whole / 4).obstacles)]).toEqual([
      expect.stringMatching(
        /^the l4_chain "c1": .* collides with l4_chain "c2" .*; what holds only together falls into two commands: apply just that first$/,
      ),
    ]);
  });

  it('drifts by what is done by hand, and by nothing that is undone again', async () => {
    await fc.assert(
      fc.asyncProperty(randomDocument, histories(20), async (text, byHand) => {
        fc.pre(!text.includes('__proto__'));
        const fleet = await ownedFleet(text);
        fc.pre(fleet !== undefined);
        const base = definitions(fleet!);
        play(byHand, { fleet: fleet! });
        const now = definitions(fleet!);
        const expected = [...base].filter(
          ([owner, fields]) => JSON.stringify(fields) !== JSON.stringify(now.get(owner)),
        );
        seen.drifted += expected.length;
        const found = drifted(fleet!).filter(({ changes }) =>
          changes.some(({ path }) => !/^deployed|^public_key|^certificate/.test(path)),
        );
        expect(found.map(({ resource: { type, id } }) => ownerOf(type, id)).sort()).toEqual(
          expected.map(([owner]) => owner).sort(),
        );
      }),
      { numRuns: 25 },
    );
    expect(seen.drifted).toBeGreaterThan(1);
  });

  it('drifts as a model says after every command, whatever is applied, edited, taken back and brought back', async () => {
    const seen = { applied: 0, adopted: 0, released: 0, reverted: 0, broughtBack: 0, drifted: 0 };
    const text = fc.oneof(randomDocument, tradingDocument, tradingDocument);
    const sets = [set, 'other'] as const;
    const of = fc.constantFrom(...sets);
    const act = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('apply' as const), text, of }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('hand' as const), moves: histories(5) }) },
      { weight: 5, arbitrary: fc.record({ kind: fc.constant('revert' as const) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('release' as const), of }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 4, maxLength: 12, size: 'max' }), async (acts) => {
        const fleet = emptyFleet();
        type Base = ReadonlyMap<string, object> | undefined;
        /** By set: the definitions that the document left; undefined without one. */
        const bases = new Map<string, Base>();
        const entries: {
          readonly command: RecordedCommand;
          readonly of: string;
          readonly before: Base;
          readonly after: Base;
        }[] = [];
        /** The sets that resources belong to, or belonged to at last. */
        const owners = new Map<string, string | null>();
        const check = (): void => {
          const now = definitions(fleet);
          for (const owner of now.keys()) owners.set(owner, ownerIn(fleet, owner));
          const listed = runSync(setsOf(fleet));
          for (const one of sets) {
            const expected = [...(bases.get(one) ?? [])].filter(
              ([owner, fields]) =>
                owners.get(owner) === one && JSON.stringify(fields) !== JSON.stringify(now.get(owner)),
            );
            seen.drifted += expected.length;
            const found = drifted(fleet, one).filter(({ changes }) =>
              changes.some(({ path }) => !/^deployed|^public_key|^certificate/.test(path)),
            );
            expect(found.map(({ resource: { type, id } }) => ownerOf(type, id)).sort()).toEqual(
              expected.map(([owner]) => owner).sort(),
            );
            expect(listed.find((row) => row.set === one)?.drift ?? 0).toBe(drifted(fleet, one).length);
          }
          expect(restored(fleet)).toBe(dumpFleet(fleet));
        };
        for (const [index, one] of acts.entries()) {
          switch (one.kind) {
            case 'hand':
              play(one.moves, { fleet, after: check });
              break;
            case 'apply': {
              if (one.text.includes('__proto__')) break;
              const wanted = one.text.replace(`set: ${set}`, `set: ${one.of}`);
              const flags = { prune: true, adopt: true, adoptFrom: sets, maxDeletes: 1_000 };
              const comparison = await comparedWith(fleet, wanted, flags);
              const { steps, mistakes, obstacles } = carriedOut(fleet, comparison);
              if ([mistakes, obstacles, comparison.mistakes, comparison.obstacles].flat().length > 0) break;
              const command = applied(fleet, comparison, steps, `apply-${index}`, one.of);
              const [before, after] = [bases.get(one.of), owned(fleet, one.text, one.of)];
              if (steps.some(({ change: { action } }) => action === 'adopt')) seen.adopted += 1;
              bases.set(one.of, after);
              entries.push({ command, of: one.of, before, after });
              seen.applied += 1;
              break;
            }
            case 'release': {
              const owners = [...definitions(fleet).keys()].filter((owner) => ownerIn(fleet, owner) === one.of);
              const release = { type: 'ReleaseSet' as const, releaseId: `release-${index}`, set: one.of };
              if (owners.length === 0 && bases.get(one.of) === undefined) break;
              // In two commands, as a large set is.
              const half = Math.ceil(owners.length / 2);
              for (const some of [owners.slice(0, half), owners.slice(half)]) {
                const decision = runSync(decideRelease(fleet, { ...release, owners: some }));
                if (!decision.ok) throw new Error(decision.error.message);
                const before = bases.get(one.of);
                bases.delete(one.of);
                const command = written(fleet, `release-${index}-${entries.length}`, decision.value);
                entries.push({ command, of: one.of, before, after: undefined });
              }
              seen.released += 1;
              break;
            }
            case 'revert': {
              // The newest entry that stands, or the one that took it back.
              const newest = entries.at(-1);
              if (newest === undefined || newest.command.events.length < 2) break;
              const isRevert = newest.command.events[0].type === 'FleetBaseMoved';
              const decision = runSync(
                decideRevertOf(fleet, {
                  entry: newest.command,
                  histories: historiesAt(fleet, newest.command),
                }),
              );
              if (!decision.ok) break;
              const { id } = newest.command.events[0].metadata.command;
              const command = written(fleet, `revert-${index}`, decision.value, id);
              bases.set(newest.of, newest.before);
              entries.pop();
              entries.push({ ...newest, command, before: newest.after, after: newest.before });
              if (isRevert) seen.broughtBack += 1;
              else seen.reverted += 1;
              break;
            }
          }
          check();
        }
      }),
      { numRuns: 60 },
    );
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(1);
  });
});

/** The definitions of what the set owns, of the types that a document has a section for: with prune, it names all of them. */
const owned = (fleet: Fleet, text: string, of: string): ReadonlyMap<string, object> =>
  new Map(
    [...definitions(fleet)].filter(([owner]) => {
      const { type } = splitOwner(owner);
      const { singular } = resources[type as keyof typeof resources];
      const section = type === 'listener_policy' ? 'policies' : `${singular}s`;
      return text.includes(`\n${section}:`) && ownerIn(fleet, owner) === of;
    }),
  );

function ownerIn(fleet: Fleet, owner: string): string | null {
  const { type, id } = splitOwner(owner);
  return fleet.get<AnyState>({ type }, id)?.managed_by ?? null;
}

/** What the decision of a revert needs to know, where nothing that was done since is in its way but what it overwrites. */
const historiesAt = (fleet: Fleet, command: RecordedCommand) =>
  new Map(
    [...subjectsOf(command)].map(([owner, about]) => [
      owner,
      {
        version: versionOfSubject(fleet, about),
        later: [],
        changedBy: new Map(['name', 'deployed'].map((field) => [field, 'later'])),
        former: { version: 99, created_at: '' },
      },
    ]),
  );

/** The fleet as its checkpoint has it. */
function restored(fleet: Fleet): string {
  return dumpFleet(copyOf(fleet));
}
