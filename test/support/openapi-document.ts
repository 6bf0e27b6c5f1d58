/** The OpenAPI document as tests read it: the operations of its paths, and its schemas with their references followed. */

export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly maxProperties?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly description?: string;
  readonly example?: unknown;
  readonly examples?: readonly unknown[];
  readonly $ref?: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema?: Schema;
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}

interface Described {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: Content & { readonly required?: boolean };
  readonly responses?: Readonly<Record<string, Content>>;
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

export interface Operation {
  /** In capital letters. */
  readonly method: string;
  /** `/api/nodes/{id}` */
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Of a body in JSON; undefined where the operation takes none. */
  readonly body: Schema | undefined;
  /** Nothing counts as an empty object. */
  readonly bodyIsOptional: boolean;
  /** Of the data of a success. */
  readonly data: Schema | undefined;
  /** Of the answers that it describes. */
  readonly statuses: readonly number[];
}

/** Every operation, in the order of the document. */
export function operationsOf(document: Document): readonly Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      method: method.toUpperCase(),
      path,
      parameters: described.parameters ?? [],
      body: described.requestBody?.content?.['application/json']?.schema,
      bodyIsOptional: described.requestBody?.required === false,
      statuses: Object.keys(described.responses ?? {}).map(Number),
      data: dataOf(document, successOf(described)?.content?.['application/json']?.schema),
    })),
  );
}

/** What is inside the envelope. */
function dataOf(document: Document, envelope: Schema | undefined): Schema | undefined {
  return envelope && resolved(document, envelope).properties?.['data'];
}

function successOf({ responses = {} }: Described): Content | undefined {
  return responses['200'] ?? responses['201'];
}

/** The schema that a reference names, or the schema itself. One allowed value is a list of one. */
export function resolved(document: Document, schema: Schema): Schema {
  if (schema.$ref === undefined) {
    return schema.const === undefined || schema.enum !== undefined ? schema : { ...schema, enum: [schema.const] };
  }
  const name = schema.$ref.split('/').at(-1) ?? '';
  return resolved(document, document.components?.schemas?.[name] ?? {});
}
