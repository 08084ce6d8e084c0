import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const NEEDED = ['podman', 'conmon', 'crun', 'busybox', 'curl']

const missing = NEEDED.filter(name =>
  ['/usr/bin', '/bin', '/usr/local/bin'].every(folder => !existsSync(`${folder}/${name}`)),
)

/** The options of a test that starts containers: skipped where their programs are missing, but never in a pipeline. */
export const withEngine = (): { skip?: string } =>
  missing.length > 0 && !process.env.CI
    ? { skip: `this machine lacks ${missing.join(', ')} (Debian: apt-get install podman crun busybox-static curl)` }
    : {}

/** Whether busybox needs no libraries, so that it runs in an image that holds nothing else. */
export const isStatic = (): boolean => execFileSync('busybox', ['--list'], { encoding: 'utf8' }).includes('sh\n')

/** A command of a turn that builds the image `box` of nothing but busybox. */
export const BUILDS = [
  'mkdir -p /tmp/box && cp "$(command -v busybox)" /tmp/box/busybox',
  `printf 'FROM scratch\\nCOPY busybox /bin/busybox\\nCOPY busybox /bin/sh\\nENV PATH=/bin\\n' > /tmp/box/Dockerfile`,
  'podman --remote build -q -t box /tmp/box',
].join(' && ')

/** A command of a turn that runs one in a container of that image, with options of `podman run`. */
export const contained = (command: string, options = ''): string =>
  `podman --remote run --rm ${options} box sh -c '${command.replaceAll("'", `'\\''`)}' 2>&1`
