/**
 * Tells fastify that it needs no compilers of JSON schemas. Otherwise it loads them whether or not it is given others, which are
 * 130 files at each start. The routes' own compilers, of zod, are given in `build.ts`.
 */
const none = (): never => {
  throw new Error('fastify has no compilers of its own here; a route needs those of build.ts');
};

/** The option `schemaController` of fastify. */
export const noSchemaCompilers = { compilersFactory: { buildValidator: none, buildSerializer: none } };
