import { verbs } from './verbs.js'

const WIDE = 28

const line = (form: string, help: string): string =>
  form.length < WIDE ? `${form.padEnd(WIDE)} ${help}` : `${form}\n${' '.repeat(WIDE)} ${help}`

const LINES = [
  ...[...verbs.values()].map(({ form, help }) => line(form, help)),
  line('repeat N COMMAND', 'does it N times, at most 10000; $n counts from 1'),
]

/** What `/help` answers: the language. Four blanks keep its table a table where it is read as Markdown. */
export const HELP = [
  'This provider runs scripts, offline and without an account. A prompt is a script when its first line begins with '
    + 'one of these verbs in lower case; any other prompt is only repeated to you.',
  LINES.join('\n').replace(/^/gm, '    '),
  'A line that begins with # is a comment; a line --- or one that begins with ## ends the script, and the rest is a '
    + 'brief that is not run. $answer $exit $out $words $n $run $conversation are replaced, $$ is a dollar sign. '
    + '/demo shows a script at work.',
].join('\n\n')

/** What `/demo` runs. */
export const DEMO = `think A short demonstration: a list, a file, a command, a question and an answer.
todo [~] write a file | [ ] run a command | [ ] ask what comes next
write sandbox-demo.md
| # Hello from the sandbox
|
| This file was written by the built-in provider, offline and without an account.
todo [x] write a file | [~] run a command | [ ] ask what comes next
run wc -c < sandbox-demo.md
todo [x] write a file | [x] run a command | [~] ask what comes next
ask The file sandbox-demo.md has $out bytes. What comes next?
| Look at it: see the change this turn made
| Nothing: leave it where it is
todo [x] write a file | [x] run a command | [x] ask what comes next
say You chose: $answer. The file is sandbox-demo.md. Send /help to see the language this was written in.`
