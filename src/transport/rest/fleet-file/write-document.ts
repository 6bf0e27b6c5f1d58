/**
 * Writes resources as documents of the fleet: names in place of ids, without secrets, defaults and assigned values, one line
 * for each resource. A written document reads back the same. Implements `docs/contract/automation.md#the-fleet-as-a-file`,
 * export.
 */
import { chainStatus } from '../../../domain/chain/status.js';
import type { ChainState } from '../../../domain/chain/chain.js';
import { withNames } from '../../../domain/fleet-file/naming.js';
import type { AnyState } from '../../../domain/fleet/resources.js';
import { nameOfPolicy, type PolicyState } from '../../../domain/listener-policy/policy.js';
import { defaultSettings, globalFields, policyFields, type SettingsState } from '../../../domain/settings/settings.js';
import { sortKey } from '../../../domain/resource/meta.js';
import { sortedBy } from '../../../kernel/compare-text.js';
import type { Json, JsonObject } from '../../../kernel/json.js';
import type { WholeFleet } from '../../../projections/port.js';
import { policyReferences, settingsReferences, type Section, type Sections } from './sections.js';

/** The lines of a set's document; none for an empty set. @param set null for resources that no set owns */
export function* documentLines(
  { all }: Sections,
  { states, nameOf, settings }: WholeFleet,
  set: string | null,
  withSettings: boolean,
): Generator<string> {
  yield `svc: 1\nset: ${scalar(set)}\n`;
  const owned = <S extends AnyState>(list: readonly S[]): readonly S[] =>
    list.filter(({ managed_by }) => (managed_by ?? null) === set);
  for (const section of all) {
    const ofSet = owned(states(section.type));
    if (ofSet.length === 0) continue;
    yield `${section.name}:\n`;
    for (const state of sortedBy(ofSet, ({ name }) => sortKey(name)))
      yield `  ${scalar(state.name)}: ${flow(fieldsOf(section, state, nameOf))}\n`;
  }
  const policies = owned(states('listener_policy')) as readonly AnyState[] as readonly PolicyState[];
  if (policies.length > 0) {
    yield 'policies:\n';
    const named = sortedBy(policies, ({ id }) => sortKey(nameOfPolicy(id, (node) => nameOf('node', node))));
    for (const { node_id, transport, listen_addr, listen_port, priority_order } of named) {
      const fields = { node_id, transport, listen_addr, listen_port, priority_order };
      yield `  - ${flow(withNames(fields, policyReferences, nameOf))}\n`;
    }
  }
  const changed = withSettings ? changedSettings(settings) : {};
  if (Object.keys(changed).length > 0) yield `settings: ${flow(withNames(changed, settingsReferences, nameOf))}\n`;
}

function fieldsOf(
  { references, fieldsOf: inFile, deploys }: Section,
  state: AnyState,
  nameOf: WholeFleet['nameOf'],
): Json {
  const fields = withNames(inFile(state), references, nameOf) as JsonObject;
  const deployed = deploys && chainStatus(state as ChainState) === 'deployed';
  return deployed ? { ...fields, deploy: true } : fields;
}

/** The settings that differ from their defaults, without rollout policies, which no document describes. */
export function changedSettings(settings: SettingsState): JsonObject {
  const described = globalFields.filter((field) => !policyFields.some((one) => one === field));
  const fields = described.filter((field) => settings[field] !== defaultSettings[field]);
  const nodes = Object.entries(settings.nodes).map(([node_id, override]) => ({ node_id, ...override }));
  return {
    ...Object.fromEntries(fields.map((field) => [field, settings[field]])),
    ...(nodes.length === 0 ? {} : { nodes }),
  };
}

/** A value in flow style, on one line. */
function flow(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((entry: Json) => flow(entry)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return scalar(value);
  const members = Object.entries(value as JsonObject).map(([key, inner]) => `${scalar(key)}: ${flow(inner)}`);
  return `{${members.join(', ')}}`;
}

/** Text that is a plain scalar in flow style and reads back as text. */
const plain = /^[A-Za-z][A-Za-z0-9_./-]*$/;
const otherThanText = /^(?:true|false|null|yes|no|on|off|y|n)$/i;
const address = /^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$/;

function scalar(value: Json): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  const isPlain = (plain.test(value) && !otherThanText.test(value)) || address.test(value);
  return isPlain ? value : quoted(value);
}

/** A JSON string is a YAML string, except for unprintable characters. */
function quoted(value: string): string {
  return JSON.stringify(value).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
