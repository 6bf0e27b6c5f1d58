/**
 * A document of the fleet as a file, read and checked by itself. Resources have the fields of requests, and refer to each
 * other by stand-in ids, which `resolve.ts` replaces with those of the fleet. Implements
 * `docs/contract/automation.md#the-fleet-as-a-file`, the document.
 */
import type { PolicyDefinition } from '../listener-policy/policy.js';
import type { JsonObject } from '../../kernel/json.js';
import type { ResourceType } from '../fleet/resources.js';
import type { UpdateConnectivity } from '../settings/settings.js';
import type { ReferenceFields } from './naming.js';

/** One resource of a document. */
export interface Wanted {
  readonly type: ResourceType;
  readonly name: string;
  /** Its former name. */
  readonly was?: string | undefined;
  /** Stands for the resource in the document's references; becomes its id if it does not exist yet. */
  readonly id: string;
  /** Its definition without the name, defaults filled in. */
  readonly fields: JsonObject;
  /** The fields that an edit sets; all of them when absent. */
  readonly edited?: JsonObject;
  readonly deploy: boolean;
  /** Whether the document leaves its key or certificate alone. */
  readonly keepsKey?: boolean;
  /** Its path in the document. */
  readonly at: readonly PropertyKey[];
}

/** A name that a document refers to; `id` stands for it in fields. */
export type NamedReference = Pick<Wanted, 'name' | 'id' | 'at'> & { readonly type: string };

export interface WantedPolicy {
  readonly fields: PolicyDefinition;
  readonly at: readonly PropertyKey[];
}

export interface FleetDocument {
  /** The set that owns the resources; null for none. */
  readonly set: string | null;
  /** In the order of the document. */
  readonly resources: readonly Wanted[];
  /** The types that have a section. */
  readonly sections: ReadonlySet<ResourceType>;
  readonly policies: readonly WantedPolicy[] | undefined;
  readonly settings: Omit<UpdateConnectivity, 'type' | 'ifMatch'> | undefined;
  readonly references: readonly NamedReference[];
  readonly referenceFields: ReadonlyMap<string, ReferenceFields>;
}

/** Permissions of a caller of plan or apply. */
export interface FileFlags {
  readonly prune: boolean;
  readonly adopt: boolean;
  /** The sets from which resources may be adopted. */
  readonly adoptFrom: readonly string[];
  /** The maximum number of deletions; depends on the size of the set when absent. */
  readonly maxDeletes?: number | undefined;
}

/** A mistake that shows only against the fleet. */
export interface DocumentMistake {
  readonly at: readonly PropertyKey[];
  readonly message: string;
}
