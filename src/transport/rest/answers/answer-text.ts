/**
 * Writes answers by the schema of their route: fields that it does not have are left out, and a value that it does not allow
 * is a fault. Zod alone checks an answer, copies it and has the copy turned into text; here one walk over the value does all
 * three, for the kinds of schemas that answers are made of. Whatever it is not certain of is left to zod.
 * Implements `docs/contract/rest.md#envelope`.
 */
import { serializerCompiler } from '@fastify/type-provider-zod';
import type { FastifySerializerCompiler } from 'fastify';
import { z } from 'zod';
import { quoted } from '../../../kernel/json.js';

/** The JSON text of a value, or undefined when zod has to be asked. */
type Writer = (value: unknown) => string | undefined;

/**
 * Compiles the schema of a route's answer; fastify calls it once per route and status.
 * @returns the text of an answer @throws ResponseSerializationError for a value that the schema does not allow
 */
export const answerCompiler: FastifySerializerCompiler<z.ZodType> = (route) => {
  const byZod = serializerCompiler(route);
  const write = writerOf(route.schema);
  return (value) => write(value) ?? byZod(value);
};

function writerOf(schema: z.core.$ZodType): Writer {
  // What a schema checks beside its type is its own business.
  if ((schema._zod.def.checks ?? []).length > 0) return askZod(schema);
  if (schema instanceof z.core.$ZodObject) return objectWriter(schema);
  if (schema instanceof z.core.$ZodArray) return arrayWriter(writerOf(schema._zod.def.element));
  if (schema instanceof z.core.$ZodRecord) return recordWriter(schema);
  if (schema instanceof z.core.$ZodNullable) {
    const write = writerOf(schema._zod.def.innerType);
    return (value) => (value === null ? 'null' : write(value));
  }
  if (schema instanceof z.core.$ZodString && !('format' in schema._zod.def)) return stringText;
  if (schema instanceof z.core.$ZodNumber) return numberWriter(schema);
  if (schema instanceof z.core.$ZodBoolean) return booleanText;
  if (schema instanceof z.core.$ZodNull) return (value) => (value === null ? 'null' : undefined);
  if (schema instanceof z.core.$ZodEnum || schema instanceof z.core.$ZodLiteral) return oneOfWriter(schema._zod.values);
  return askZod(schema);
}

function askZod(schema: z.core.$ZodType): Writer {
  return (value) => {
    const encoded = z.safeEncode(schema, value);
    return encoded.success ? JSON.stringify(encoded.data) : undefined;
  };
}

const stringText: Writer = (value) => (typeof value === 'string' ? quoted(value) : undefined);

const booleanText: Writer = (value) => (typeof value === 'boolean' ? String(value) : undefined);

function numberWriter(schema: z.core.$ZodNumber): Writer {
  const format = 'format' in schema._zod.def ? schema._zod.def.format : undefined;
  if (format === undefined) return (value) => (Number.isFinite(value) ? String(value) : undefined);
  if (format === 'safeint') return (value) => (Number.isSafeInteger(value) ? String(value) : undefined);
  return askZod(schema);
}

/** One of few values, whose texts are made once. */
function oneOfWriter(values: ReadonlySet<unknown>): Writer {
  const texts = new Map([...values].map((value) => [value, JSON.stringify(value)]));
  return (value) => texts.get(value);
}

function arrayWriter(write: Writer): Writer {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    let text = '[';
    for (let index = 0; index < value.length; index += 1) {
      const element = write(value[index]);
      if (element === undefined) return undefined;
      text += index === 0 ? element : `,${element}`;
    }
    return `${text}]`;
  };
}

function recordWriter(schema: z.core.$ZodRecord): Writer {
  const { keyType, valueType } = schema._zod.def;
  if (writerOf(keyType) !== stringText) return askZod(schema);
  const write = writerOf(valueType);
  return (value) => {
    if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
      return undefined;
    let text = '';
    for (const [key, element] of Object.entries(value)) {
      const written = key === '__proto__' ? undefined : write(element);
      if (written === undefined) return undefined;
      text += `${text === '' ? '{' : ','}${quoted(key)}:${written}`;
    }
    return text === '' ? '{}' : `${text}}`;
  };
}

function objectWriter(schema: z.core.$ZodObject): Writer {
  const { shape, catchall } = schema._zod.def;
  if (catchall !== undefined) return askZod(schema);
  const fields = Object.entries(shape).map(([key, field]) => {
    const optional = field instanceof z.core.$ZodOptional && (field._zod.def.checks ?? []).length === 0;
    const write = writerOf(optional ? field._zod.def.innerType : field);
    return { key, start: `${quoted(key)}:`, optional, write };
  });
  return (value) => {
    if (typeof value !== 'object' || value === null) return undefined;
    let text = '';
    for (const { key, start, optional, write } of fields) {
      const field = (value as Readonly<Record<string, unknown>>)[key];
      if (optional && field === undefined) continue;
      const written = write(field);
      if (written === undefined) return undefined;
      text += (text === '' ? '{' : ',') + start + written;
    }
    return text === '' ? '{}' : `${text}}`;
  };
}
