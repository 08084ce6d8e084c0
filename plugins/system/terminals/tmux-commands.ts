/** Bytes of input that one command carries. */
const TYPED = 1_024

/** The options that name the server of a session; its socket is in the working folder. */
export const argsOf = (name: string): string[] => ['-u', '-S', name, '-f', '/dev/null']

/** A session as the target of a command. */
export const target = (name: string): string => `=${name}:`

/** The commands that pipe output to a shell command; tmux expands its own formats and those of strftime(3) in it. */
export const piping = (name: string, command: string): string[] => [
  '-O',
  '-t',
  target(name),
  command.replaceAll('#', '##').replaceAll('%', '%%'),
]

/** The commands that send keys, as bytes, so that tmux interprets none of them. */
export const typing = (name: string, text: string): string[] => {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / TYPED) }, (_, at) => {
    const keys = [...bytes.subarray(at * TYPED, (at + 1) * TYPED)].map(byte => byte.toString(16).padStart(2, '0'))
    return `send-keys -t ${target(name)} -H ${keys.join(' ')}`
  })
}
