/** The lines that a new resource puts into files that are there already. */

export interface Edit {
  /** From the root of the copy. */
  readonly path: string;
  /** Text of the file, which must hold it once. */
  readonly from: string;
  readonly to: string;
}

export const edits: readonly Edit[] = [
  {
    path: 'src/domain/fleet/resources.ts',
    from: "import { l4Chain } from '../chain/declaration.js';\n",
    to: "import { beacon } from '../beacon/beacon.js';\nimport { l4Chain } from '../chain/declaration.js';\n",
  },
  {
    path: 'src/domain/fleet/resources.ts',
    from: 'export const resources = {',
    to: 'export const resources = { beacon,',
  },
  {
    path: 'src/transport/rest/resources.ts',
    from: "import { chainRoutes } from './resources/chains.js';\n",
    to: "import { beaconRoutes } from './resources/beacons.js';\nimport { chainRoutes } from './resources/chains.js';\n",
  },
  {
    path: 'src/transport/rest/resources.ts',
    from: '  route: legacyRouteRoutes,\n',
    to: '  route: legacyRouteRoutes,\n  beacon: beaconRoutes,\n',
  },
];
