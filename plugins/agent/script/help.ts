/** What `/help` answers: the language. */
export const HELP = `This provider runs scripts, offline and without an account. A prompt is a script when its first line begins with one of these verbs in lower case; any other prompt is only repeated to you.

say TEXT                     says it, word by word (also: lines below that begin with |)
think TEXT                   thinks it
todo [ ] a | [~] b | [x] c   shows a list of what is to do, in hand and done
read PATH [FROM-TO]          reads a file into $out
list PATH                    lists a folder into $out
write PATH, append PATH      writes the | lines below into a file
edit PATH                    replaces the lines "| - old" by the lines "| + new"; old must occur exactly once
delete PATH, move FROM -> TO
run COMMAND                  runs it in the shell; $exit and $out
image PATH                   shows a picture
ask QUESTION                 asks; below it lines "| label: description" (ask* takes several); $answer
plan TEXT                    puts up a plan; a no ends the turn
permit TOOL: SENTENCE        asks for permission; $answer is once, always or deny
helper DESCRIPTION           gives a helper the | lines below as its script (its own lines carry one | more); $out is what it said last
helper& DESCRIPTION, join    the same beside the rest of this script; join waits for all of them
wait MS, wait words [MS]     waits, or waits for words said into the turn; $words
mode MODE                    default, acceptEdits, plan or bypassPermissions
usage IN OUT [USD]           what the turn counts as having cost
expect TEXT                  fails the turn unless $out contains it
repeat N COMMAND             $n counts from 1; at most 10000
refuse CODE MESSAGE, outage [TIMES], fail MESSAGE, stop

# begins a comment; a line --- or one that begins with ## ends the script, and the rest is a brief that is not run. $answer $exit $out $words $n $run $conversation are replaced, $$ is a dollar sign. /demo shows a script at work.`

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
