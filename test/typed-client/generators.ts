/** Where the generators of clients in other languages are. Built by `npm run test:servers`. */
import { join } from 'node:path';
import { projectRoot } from '../support/project-root.js';

const built = join(projectRoot, 'dist', 'test-servers');

export const goGenerator = join(built, 'oapi-codegen');
/** Its environment has what the client needs to run, too. */
export const pythonGenerator = join(built, 'openapi-python-client', 'bin', 'openapi-python-client');
