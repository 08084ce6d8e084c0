// Connects its standard input and output to a server through a socket of the daemon. The first line that the daemon
// writes is empty, or says why there is no connection.
import { connect } from 'node:net'

const NEWLINE = 10

const socket = connect(process.argv[2] ?? '')
const fail = (sentence: string): void => {
  process.stderr.write(`${sentence}\n`)
  process.exitCode = 1
}

let first: Buffer | undefined = Buffer.alloc(0)
socket.on('data', function begin(piece: Buffer) {
  first = Buffer.concat([first!, piece])
  const end = first.indexOf(NEWLINE)
  if (end === -1) return
  socket.off('data', begin)
  const [sentence, rest] = [first.subarray(0, end).toString(), first.subarray(end + 1)]
  first = undefined
  if (sentence !== '') {
    socket.destroy()
    return fail(sentence)
  }
  process.stdout.write(rest)
  process.stdin.pipe(socket)
  socket.pipe(process.stdout)
})
socket.on('end', () => first && fail('the sandbox ended the connection'))
socket.on('error', error => fail(`the sandbox is not reached: ${error.message}`))
socket.on('close', () => process.stdin.destroy())
process.stdout.on('error', () => socket.destroy())
