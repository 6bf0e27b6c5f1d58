/**
 * Which paths and methods exist, so that the gate can answer a 404 of the path and a 405 before all other checks. A
 * static segment beats a parameter. Pure; fastify's router finds the handler. Implements
 * `docs/contract/rest.md#envelope`.
 */
import type { Access, BodyRule } from '../request-state.js';

export interface Endpoint {
  readonly method: string;
  /** `/api/nodes/:id` */
  readonly template: string;
  readonly access: Access;
  readonly takes: BodyRule;
}

export interface KnownPath {
  readonly template: string;
  readonly methods: ReadonlyMap<string, Endpoint>;
}

export interface RouteTable {
  add(endpoint: Endpoint): void;
  find(pathname: string): KnownPath | undefined;
  /** Every endpoint, in order of registration. */
  all(): readonly Endpoint[];
}

interface Path {
  readonly template: string;
  readonly segments: readonly string[];
  readonly methods: Map<string, Endpoint>;
}

const methodOrder = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** The methods of a path in the order that `Allow` lists them. */
export function allowedMethods(path: KnownPath): readonly string[] {
  return [...path.methods.keys()].sort((a, b) => methodOrder.indexOf(a) - methodOrder.indexOf(b));
}

export function createRouteTable(): RouteTable {
  const paths = new Map<string, Path>();
  /** By their number of segments: every request looks for its path. */
  const byLength = new Map<number, Path[]>();
  return {
    add(endpoint) {
      const { template } = endpoint;
      let path = paths.get(template);
      if (path === undefined) {
        path = { template, segments: template.split('/'), methods: new Map() };
        paths.set(template, path);
        const { length } = path.segments;
        byLength.set(length, [...(byLength.get(length) ?? []), path]);
      }
      path.methods.set(endpoint.method, endpoint);
    },
    find(pathname) {
      const exact = paths.get(pathname);
      if (exact !== undefined && !pathname.includes(':')) return exact;
      const segments = pathname.split('/');
      let best: Path | undefined;
      for (const path of byLength.get(segments.length) ?? []) {
        if (!matches(path.segments, segments)) continue;
        if (best === undefined || moreStatic(path.segments, best.segments)) best = path;
      }
      return best;
    },
    all: () => [...paths.values()].flatMap((path) => [...path.methods.values()]),
  };
}

function matches(template: readonly string[], path: readonly string[]): boolean {
  return (
    template.length === path.length &&
    template.every((segment, index) => (segment.startsWith(':') ? path[index] !== '' : segment === path[index]))
  );
}

/** True when `a` has a static segment at the first place where only one of both has a parameter. */
function moreStatic(a: readonly string[], b: readonly string[]): boolean {
  const place = a.findIndex((segment, index) => segment.startsWith(':') !== (b[index] ?? '').startsWith(':'));
  return place >= 0 && !(a[place] ?? '').startsWith(':');
}
