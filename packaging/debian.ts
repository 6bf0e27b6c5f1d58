/**
 * What makes a folder a Debian package: control file, maintainer scripts, unit, documents. Data and settings belong to the
 * operator: no package contains them, removal keeps them, purge deletes them.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { filesBelow } from './archives.js';

export interface DebianPackage {
  readonly name: 'gateway-control' | 'gateway-agent';
  readonly version: string;
  readonly architecture: 'amd64' | 'arm64' | 'all';
  /** `NAME <ADDRESS>`. */
  readonly maintainer: string;
  /** Beside Node. */
  readonly depends: readonly string[];
  readonly summary: string;
  /** Lines of at most 79 characters. */
  readonly description: readonly string[];
  /** The installed program. */
  readonly program: string;
  readonly unit: string;
  /** For a service that runs as a user of the system: the lines of sysusers.d. */
  readonly user?: string;
  /** The time of the commit, since 1970. */
  readonly seconds: number;
}

/** Completes `folder`, which has the program at its place, and the documents at theirs. */
export function makeDebian(folder: string, made: DebianPackage): void {
  const { name, user } = made;
  const put = (path: string, text: string | Buffer): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  mkdirSync(join(folder, 'usr/bin'));
  symlinkSync(`..${made.program.slice('/usr'.length)}`, join(folder, 'usr/bin', name));
  put(`usr/lib/systemd/system/${name}.service`, made.unit);
  if (user !== undefined) put(`usr/lib/sysusers.d/${name}.conf`, user);
  put(`usr/share/doc/${name}/copyright`, copyright(made));
  put(`usr/share/doc/${name}/changelog.gz`, gzipSync(changelog(made), { level: 9 }));
  put(`usr/share/lintian/overrides/${name}`, overrides(made));
  const files = filesBelow(folder);
  const sums = files
    .filter((path) => path !== `usr/bin/${name}`)
    .map(
      (path) =>
        `${createHash('md5')
          .update(readFileSync(join(folder, path)))
          .digest('hex')}  ${path}\n`,
    );
  const bytes = files.reduce(
    (sum, path) => sum + (path.startsWith('usr/bin/') ? 0 : statSync(join(folder, path)).size),
    0,
  );
  put('DEBIAN/md5sums', sums.join(''));
  put('DEBIAN/control', control(made, Math.ceil(bytes / 1024)));
  put('DEBIAN/postinst', postinst(made));
  put('DEBIAN/prerm', prerm(name));
  put('DEBIAN/postrm', postrm(name));
}

const control = (made: DebianPackage, kibibytes: number): string => `Package: ${made.name}
Version: ${made.version}
Architecture: ${made.architecture}
Maintainer: ${made.maintainer}
Installed-Size: ${kibibytes}
Depends: ${['nodejs (>= 20.19)', ...made.depends].join(', ')}
Section: net
Priority: optional
Description: ${made.summary}
 ${made.description.join('\n ')}
`;

const copyright = ({
  name,
  seconds,
}: DebianPackage): string => `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ${name}
Comment: The packages of others inside are listed, with their terms, in THIRD-PARTY-LICENSES beside this file.

Files: *
Copyright: ${new Date(seconds * 1000).getUTCFullYear()} the authors of ${name}
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
`;

const changelog = ({
  name,
  version,
  maintainer,
  seconds,
}: DebianPackage): string => `${name} (${version}) stable; urgency=medium

  * See CHANGELOG.md beside this file.

 -- ${maintainer}  ${new Date(seconds * 1000).toUTCString().replace('GMT', '+0000')}
`;

/** Native code is as its authors built it, byte for byte. */
const overrides = ({ name, architecture }: DebianPackage): string =>
  ['no-manual-page', ...(architecture === 'all' ? [] : ['unstripped-binary-or-object'])]
    .map((tag) => `${name}: ${tag} *\n`)
    .join('');

const script = (text: string): string => `#!/bin/sh\nset -e\n\n${text}`;
const runsSystemd = '[ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]';

const postinst = ({ name, user }: DebianPackage): string =>
  script(`case "$1" in
configure | abort-upgrade | abort-deconfigure | abort-remove)
${user === undefined ? '' : `	systemd-sysusers \${DPKG_ROOT:+--root="$DPKG_ROOT"} ${name}.conf\n`}	deb-systemd-helper unmask ${name}.service >/dev/null || true
	# An upgrade leaves a unit disabled that somebody disabled.
	if deb-systemd-helper --quiet was-enabled ${name}.service; then
		deb-systemd-helper enable ${name}.service >/dev/null || true
	else
		deb-systemd-helper update-state ${name}.service >/dev/null || true
	fi
	if ${runsSystemd}; then
		systemctl --system daemon-reload >/dev/null || true
		if [ -n "$2" ]; then action=restart; else action=start; fi
		deb-systemd-invoke "$action" ${name}.service >/dev/null || true
	fi
	;;
esac
`);

const prerm = (name: string): string =>
  script(`if [ "$1" = remove ] && ${runsSystemd}; then
	deb-systemd-invoke stop ${name}.service >/dev/null || true
fi
`);

const postrm = (name: string): string =>
  script(`if [ "$1" = remove ] && ${runsSystemd}; then
	systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = purge ]; then
	deb-systemd-helper purge ${name}.service >/dev/null || true
	rm -rf "$DPKG_ROOT/var/lib/${name}" "$DPKG_ROOT/var/lib/private/${name}" "$DPKG_ROOT/etc/${name}"
fi
`);
