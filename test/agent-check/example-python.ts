/** The generator of gRPC code in the environment of the example agent in Python. Built by `npm run test:servers`. */
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.js';

/** Beside it is the Python that has the packages of the example. */
export const examplePython = join(
  projectRoot,
  'dist',
  'test-servers',
  'example-agent',
  'bin',
  'python-grpc-tools-protoc',
);
