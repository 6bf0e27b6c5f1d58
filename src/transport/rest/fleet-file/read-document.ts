/**
 * Reads a document of the fleet: YAML, then each section by its schema, with names in place of ids. Reports all mistakes of text
 * and shape at once, with line and column. `domain/fleet-file` checks it against the fleet. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import type { z } from 'zod';
import type { FleetDocument, NamedReference, Wanted, WantedPolicy } from '../../../domain/fleet-file/document.js';
import { idFieldsIn, withIds, type ReferenceFields } from '../../../domain/fleet-file/naming.js';
import type { ResourceType } from '../../../domain/fleet/resources.js';
import { policyId, type PolicyDefinition } from '../../../domain/listener-policy/policy.js';
import { nameIndexKey } from '../../../domain/resource/meta.js';
import { faultOfSetName } from '../../../domain/resource/name.js';
import { nfc } from '../../../kernel/compare-text.js';
import { ServiceError } from '../../../kernel/errors.js';
import type { Ids } from '../../../kernel/ids.js';
import type { Json, JsonObject } from '../../../kernel/json.js';
import { limits } from '../../../kernel/limits.js';
import { createTurns } from '../../../kernel/background.js';
import { expected, mistakesOf, type Mistake } from '../schemas/validation.js';
import { name as nameField } from '../schemas/fields.js';
import { settingsInFile } from '../resources/settings.js';
import { tuning } from '../tuning.js';
import { policyBody, policyReferences, settingsReferences, type Section, type Sections } from './sections.js';
import type { Texts } from './texts.js';
import type { Path } from './mistake-places.js';

export interface ReadDocument {
  readonly document: FleetDocument;
  /** The refusal that names mistakes by line and column. @throws ServiceError `unavailable` */
  refusal(mistakes: readonly Mistake[]): Promise<ServiceError>;
}

/** The set of a document without a name. */
export const defaultSet = 'default';

const what = 'document';
/** @throws ServiceError `invalid_request` with every mistake of text and shape, up to a bound */
export async function readDocument(
  text: string,
  { all, referenceFields }: Sections,
  ids: Ids,
  texts: Texts,
): Promise<ReadDocument> {
  const sectionNames = all.map(({ name }) => name);
  const known = ['svc', 'set', 'policies', 'settings', ...sectionNames];
  const { value: top, mistakes } = await texts.read(text, { known, names: sectionNames });
  if (mistakes.length > 0) throw refusedFor(mistakes);
  const refusal = async (found: readonly Mistake[]): Promise<ServiceError> =>
    refusedFor(await texts.sentences(text, found));
  const reader = createReader(ids);
  const turn = createTurns(tuning.turnMs);
  if (!isObject(top)) throw await refusal([{ at: [], message: 'expected a mapping with svc: 1' }]);
  for (const key of Object.keys(top)) {
    if (known.includes(key)) continue;
    const message = `not a field of this ${what}, expected one of ${known.join(', ')}`;
    reader.note({ at: [key], message, ofKey: true });
  }
  if (top['svc'] !== 1) reader.note({ at: ['svc'], message: expected('the number 1')({ input: top['svc'] }) });
  const set = setOf(top, reader);
  const resources: Wanted[] = [];
  const sections = new Set<ResourceType>();
  for (const section of all) {
    const entries = top[section.name];
    if (entries === undefined) continue;
    sections.add(section.type);
    if (!isObject(entries)) {
      reader.note({ at: [section.name], message: 'expected a mapping of names' });
      continue;
    }
    for (const [name, value] of Object.entries(entries)) {
      const wanted = readOne(section, name, value, reader);
      if (wanted !== undefined) resources.push(wanted);
      await turn();
    }
    if (resources.length > limits.fleetFile.resources) {
      const message = `expected at most ${limits.fleetFile.resources} resources`;
      throw await refusal([{ at: [section.name], message }]);
    }
  }
  const policies = await readPolicies(top['policies'], reader, turn);
  const settings = readSettings(top['settings'], set, reader);
  if (reader.mistakes.length > 0) throw await refusal(reader.mistakes);
  const references = [...reader.references.values()];
  const document = { set, resources, sections, policies, settings, references, referenceFields };
  return { document, refusal };
}

/** The refusal that names the first mistakes. */
function refusedFor(mistakes: readonly string[]): ServiceError {
  return new ServiceError('invalid_request', mistakes.slice(0, limits.fleetFile.mistakes).join('; '), {
    // The sentences hold names of the document.
    hints: { logged: `the document has ${mistakes.length} mistakes` },
  });
}

interface Reader {
  readonly mistakes: readonly Mistake[];
  readonly references: ReadonlyMap<string, NamedReference>;
  note(mistake: Mistake): void;
  /** The placeholder id of a named resource in fields. */
  standIn(type: string, name: string, at: Path): string;
  /** The id of a resource of the document; always the same for the same name. */
  own(type: string, name: string): string;
}

function createReader(ids: Ids): Reader {
  const mistakes: Mistake[] = [];
  const references = new Map<string, NamedReference>();
  const own = new Map<string, string>();
  return {
    mistakes,
    references,
    // Far more than are shown, so that the first ones in the text are among them.
    note: (mistake) => void (mistakes.length < 1000 && mistakes.push(mistake)),
    standIn(type, name, at) {
      const key = nameIndexKey(type, name);
      const known = references.get(key);
      if (known !== undefined) return known.id;
      const id = ids.next();
      references.set(key, { type, name, id, at });
      return id;
    },
    own(type, name) {
      const key = nameIndexKey(type, name);
      const id = own.get(key) ?? ids.next();
      own.set(key, id);
      return id;
    },
  };
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function setOf(top: JsonObject, { note }: Reader): string | null {
  const set = top['set'];
  if (set === undefined) return defaultSet;
  if (set === null) return null;
  const checked = nameField.safeParse(set);
  const fault = checked.success ? faultOfSetName(checked.data) : 'expected a name of 1 to 128 characters, or null';
  if (fault !== undefined) note({ at: ['set'], message: fault });
  return checked.data ?? null;
}

function readOne(section: Section, name: string, value: Json | undefined, reader: Reader): Wanted | undefined {
  const at = [section.name, name];
  const { note } = reader;
  if (!isObject(value)) {
    note({ at, message: 'expected a mapping of fields' });
    return undefined;
  }
  const { was, deploy, ...given } = value;
  if (was !== undefined && !nameField.safeParse(was).success) {
    note({ at: [...at, 'was'], message: 'expected the name that it had before' });
  }
  if (deploy !== undefined && !section.deploys) {
    note({ at: [...at, 'deploy'], message: `not a field of this ${what}`, ofKey: true });
  } else if (deploy !== undefined && typeof deploy !== 'boolean') {
    note({ at: [...at, 'deploy'], message: 'expected true or false' });
  }
  if (Object.hasOwn(given, 'name')) note({ at: [...at, 'name'], message: `not a field of this ${what}`, ofKey: true });
  const before = reader.mistakes.length;
  const checked = check(section.body, { ...given, name }, section.references, at, reader);
  if (checked === undefined || reader.mistakes.length > before) return undefined;
  const { name: _, ...fields } = checked;
  if (deploy === true && fields['enabled'] === false) {
    note({ at: [...at, 'deploy'], message: 'expected false, or none, of one that is not enabled' });
  }
  return {
    type: section.type,
    name: nfc(name),
    was: typeof was === 'string' ? was : undefined,
    id: reader.own(section.type, name),
    fields,
    deploy: deploy === true,
    at,
  };
}

/** The fields that passed their schema, with placeholder ids for names; undefined after a mistake. */
function check(
  schema: z.ZodType,
  given: JsonObject,
  references: ReferenceFields,
  at: Path,
  reader: Reader,
): JsonObject | undefined {
  for (const path of idFieldsIn(given, references)) {
    reader.note({ at: [...at, ...path], message: `not a field of this ${what}`, ofKey: true });
  }
  const withStandIns = withIds(given, references, (name, { type }, inside) => {
    const checked = nameField.safeParse(name);
    if (checked.success) return reader.standIn(type, checked.data, [...at, ...inside]);
    // The schema judges null and values that are not names.
    return name === null || typeof name === 'string' ? null : name;
  });
  const result = schema.safeParse(withStandIns);
  if (result.success) return result.data as JsonObject;
  for (const mistake of mistakesOf(result.error.issues, `field of this ${what}`)) {
    const named = namedPath(mistake.at, references);
    const message = named.reference ? mistake.message.replace('a UUID in lower case', 'a name') : mistake.message;
    const path = named.at.length === 1 && named.at[0] === 'name' ? [] : named.at;
    reader.note({ ...mistake, at: [...at, ...path], message });
  }
  return undefined;
}

/** The path in a document for a path in a request. */
function namedPath(at: Path, references: ReferenceFields): { readonly at: Path; readonly reference: boolean } {
  let fields: ReferenceFields | undefined = references;
  let reference = false;
  const path = at.map((key) => {
    if (typeof key === 'number') return key;
    const found = fields?.here.find(({ idField }) => idField === key);
    reference = found !== undefined;
    fields = fields?.inside.get(String(key));
    return found?.nameField ?? key;
  });
  return { at: path, reference };
}

async function readPolicies(
  value: Json | undefined,
  reader: Reader,
  turn: () => Promise<void> | undefined,
): Promise<readonly WantedPolicy[] | undefined> {
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) {
    // An empty mapping counts as an empty section.
    if (isObject(value) && Object.keys(value).length === 0) return [];
    reader.note({ at: ['policies'], message: 'expected a list of policies' });
    return undefined;
  }
  const policies: WantedPolicy[] = [];
  const known = new Set<string>();
  for (const [index, entry] of (value as readonly Json[]).entries()) {
    await turn();
    const at = ['policies', index];
    const given = isObject(entry) ? entry : undefined;
    if (given === undefined) reader.note({ at, message: 'expected a mapping of fields' });
    const checked = given && check(policyBody, given, policyReferences, at, reader);
    if (checked === undefined) continue;
    const fields = checked as unknown as PolicyDefinition;
    if (known.has(policyId(fields))) reader.note({ at, message: 'expected one policy for each listener' });
    known.add(policyId(fields));
    policies.push({ fields, at });
  }
  return policies;
}

function readSettings(value: Json | undefined, set: string | null, reader: Reader): FleetDocument['settings'] {
  if (value === undefined) return undefined;
  if (!isObject(value)) {
    reader.note({ at: ['settings'], message: 'expected a mapping of fields' });
    return undefined;
  }
  if (set !== defaultSet) {
    reader.note({ at: ['settings'], message: `expected settings only in the set "${defaultSet}"`, ofKey: true });
  }
  return check(settingsInFile, value, settingsReferences, ['settings'], reader);
}
