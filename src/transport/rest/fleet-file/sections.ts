/**
 * The sections of a document: one for each resource with a create route, derived from its declaration, so that a new resource
 * has one at once; then policies and settings, which have no such route. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import { z } from 'zod';
import { noReferences, type ReferenceField, type ReferenceFields } from '../../../domain/fleet-file/naming.js';
import { declarationOf, resources, resourceTypes, type ResourceType } from '../../../domain/fleet/resources.js';
import { policyKey, policyTransports, priorityLabels } from '../../../domain/listener-policy/policy.js';
import type { DeclaredRoute, InFile } from '../route-declaration.js';
import { body, list, listenIp, oneOf, port, uuid } from '../schemas/fields.js';
import { settingsInFile } from '../resources/settings.js';

export interface Section extends InFile {
  readonly type: ResourceType;
  /** `nodes` */
  readonly name: string;
  readonly references: ReferenceFields;
  /** Whether its definition takes effect by a deploy. */
  readonly deploys: boolean;
}

export interface Sections {
  readonly all: readonly Section[];
  readonly referenceFields: ReadonlyMap<string, ReferenceFields>;
}

/** Fields whose names in documents do not just drop `_id`. */
const otherNames: { readonly [idField: string]: string } = { x25519_credential_id: 'x25519' };

/** A policy of a document. */
export const policyBody = body({
  node_id: uuid,
  transport: oneOf(policyTransports),
  listen_addr: listenIp,
  listen_port: port,
  priority_order: list(oneOf(priorityLabels)),
});

export const settingsReferences = referencesIn(settingsInFile);
export const policyReferences = referencesIn(policyBody);

/** The sections of all resources among routes, in the order of the fleet's resources. */
export function sectionsOf(routes: Iterable<DeclaredRoute>): Sections {
  const byPath = new Map(
    [...routes].flatMap(({ config: { inFile } }) => (inFile ? [[inFile.path, inFile] as const] : [])),
  );
  const all = resourceTypes.flatMap((type): readonly Section[] => {
    // Paths are made of types.
    const inFile = byPath.get(`/api/${type.replaceAll('_', '-')}s`);
    if (inFile === undefined) return [];
    const { singular, noun, decide } = declarationOf(type);
    const deploys = Object.hasOwn(decide, `Deploy${noun}`);
    return [{ ...inFile, type, name: `${singular}s`, references: referencesIn(inFile.body), deploys }];
  });
  const referenceFields = new Map<string, ReferenceFields>(all.map(({ type, references }) => [type, references]));
  return {
    all,
    referenceFields: referenceFields.set(policyKey.type, policyReferences).set('connectivity', settingsReferences),
  };
}

/** The fields of a schema that hold ids. */
function referencesIn(schema: z.ZodType): ReferenceFields {
  const here = new Map<string, ReferenceField>();
  const inside = new Map<string, ReferenceFields>();
  for (const shape of shapesIn(schema)) {
    for (const [field, inner] of Object.entries(shape)) {
      const reference = isId(inner) ? referenceField(field) : undefined;
      if (reference !== undefined) here.set(field, reference);
      const fields = referencesIn(inner);
      if (fields.here.length > 0 || fields.inside.size > 0) inside.set(field, fields);
    }
  }
  return here.size === 0 && inside.size === 0 ? noReferences : { here: [...here.values()], inside };
}

/** `listener_node_id` is the id of a node, and called `listener_node` in documents. */
function referenceField(idField: string): ReferenceField | undefined {
  const type = resourceTypes.find((one) => `_${idField}`.endsWith(`_${resources[one].singular}_id`));
  return type && { idField, nameField: otherNames[idField] ?? idField.replace(/_id$/, ''), type };
}

/** The schemas inside a schema, down to objects and their fields. */
function* shapesIn(schema: z.ZodType): Generator<{ readonly [field: string]: z.ZodType }> {
  if (schema instanceof z.ZodObject) yield schema.shape as { readonly [field: string]: z.ZodType };
  else for (const part of partsOf(schema)) yield* shapesIn(part);
}

function partsOf(schema: z.ZodType): readonly z.ZodType[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return [schema.unwrap() as z.ZodType];
  }
  if (schema instanceof z.ZodArray) return [schema.element as z.ZodType];
  if (schema instanceof z.ZodPipe) return [schema.in as z.ZodType, schema.out as z.ZodType];
  // A discriminated union is one too.
  if (schema instanceof z.ZodUnion) return schema.options as readonly z.ZodType[];
  return [];
}

function isId(schema: z.ZodType): boolean {
  if (schema.meta()?.['format'] === 'uuid') return true;
  return !(schema instanceof z.ZodArray) && partsOf(schema).some(isId);
}
