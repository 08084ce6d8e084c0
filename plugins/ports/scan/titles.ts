import { basename } from 'node:path'

const LONGEST = 80

/** What programs are called, by a part of their command line: the first one that is there. */
const NAMES: readonly (readonly [words: RegExp, title: string])[] = [
  [/\bvite\b(?!.*\bstorybook\b)/, 'Vite dev server'],
  [/\bstorybook\b/, 'Storybook'],
  [/\bnext(?:-server| dev| start|\/dist)/, 'Next.js server'],
  [/\bnuxt/, 'Nuxt dev server'],
  [/\bastro\b/, 'Astro dev server'],
  [/\bng serve\b/, 'Angular dev server'],
  [/\bwebpack(?:-dev-server| serve)/, 'webpack dev server'],
  [/\breact-scripts\b/, 'React dev server'],
  [/\bwrangler\b|\bworkerd\b/, 'Cloudflare Workers dev server'],
  [/\bmanage\.py runserver\b/, 'Django dev server'],
  [/\bflask\b.* run\b/, 'Flask dev server'],
  [/\b(?:uvicorn|gunicorn|hypercorn)\b/, 'Python web server'],
  [/\bjupyter/, 'Jupyter'],
  [/-m http\.server\b/, 'Python file server'],
  [/\b(?:puma|rails s)/, 'Rails server'],
  [/\bphp\b.* -S\b/, 'PHP dev server'],
  [/\bhugo\b.*\bserver?\b/, 'Hugo server'],
  [/\bjekyll\b/, 'Jekyll server'],
]

/** What programs are called, by their own name. */
const PROGRAMS = new Map(
  Object.entries({
    postgres: 'PostgreSQL',
    mysqld: 'MySQL',
    mariadbd: 'MariaDB',
    mongod: 'MongoDB',
    'redis-server': 'Redis',
    nginx: 'nginx',
    caddy: 'Caddy',
    sshd: 'SSH server',
    dockerd: 'Docker',
    ollama: 'Ollama',
  }),
)

const INTERPRETERS = new Map(
  Object.entries({
    node: 'Node.js',
    bun: 'Bun',
    deno: 'Deno',
    ruby: 'Ruby',
    php: 'PHP',
    java: 'Java',
  }),
)

/** A word for a program that listens, from its command line. */
export const programTitle = (args: readonly string[]): string => {
  const line = args.join(' ')
  const named = NAMES.find(([words]) => words.test(line))
  if (named) return named[1]
  const program = basename(args[0] ?? '').replace(/:$/, '')
  const known = PROGRAMS.get(program)
  if (known) return known
  const language = INTERPRETERS.get(program) ?? (/^python[\d.]*$/.test(program) ? 'Python' : undefined)
  if (!language) return program.slice(0, LONGEST) || 'unknown program'
  const script = args.slice(1).find(each => /\.[a-z]{2,4}$/.test(each) && !each.startsWith('-'))
  return `${language} program${script ? ` ${basename(script)}` : ''}`.slice(0, LONGEST)
}

/** The port in a container that a proxy of its engine publishes. */
export const containerTitle = (args: readonly string[]): string => {
  const at = args.indexOf('-container-port')
  return at >= 0 && args[at + 1] ? `Container, port ${args[at + 1]}` : 'Container'
}
