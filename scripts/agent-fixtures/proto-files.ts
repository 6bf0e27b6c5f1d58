/** The messages of `proto/` as buf reads them, without the code generated from them. */
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createFileRegistry, fromBinary, type FileRegistry } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
let registry: FileRegistry | undefined;

/** Reads `proto/` once per process. Needs buf, a development dependency. */
export function protoFiles(): FileRegistry {
  registry ??= createFileRegistry(
    fromBinary(
      FileDescriptorSetSchema,
      execFileSync(join(root, 'node_modules/.bin/buf'), ['build', 'proto', '-o', '-#format=binpb'], {
        cwd: root,
        timeout: 30_000,
        maxBuffer: 16 * 1024 * 1024,
      }),
    ),
  );
  return registry;
}
