import { conditionTokens } from '../../../sdk/conditions.js'

const isOperand = (token: string | undefined): boolean => token !== undefined && /^[\w"'-]/.test(token)

/** Whether a condition of a manifest can be read: keys and values with `==`, `!=`, `in [..]`, `&&`, `||`, `!`, `()`. */
export const isCondition = (text: string): boolean => {
  const tokens = conditionTokens(text)
  if (!tokens || tokens.length === 0) return false
  let at = 0
  const take = (token: string): boolean => tokens[at] === token && ++at > 0
  const operand = (): boolean => isOperand(tokens[at]) && tokens[at] !== 'in' && ++at > 0
  const list = (): boolean => {
    if (!take('[') || !operand()) return false
    while (take(',')) if (!operand()) return false
    return take(']')
  }
  const compared = (): boolean => {
    if (!operand()) return false
    if (take('in')) return list()
    return take('==') || take('!=') ? operand() : true
  }
  const term = (depth: number): boolean => {
    if (depth > 32) return false
    if (take('!')) return term(depth + 1)
    return take('(') ? either(depth + 1) && take(')') : compared()
  }
  const both = (depth: number): boolean => {
    do if (!term(depth)) return false
    while (take('&&'))
    return true
  }
  const either = (depth: number): boolean => {
    do if (!both(depth)) return false
    while (take('||'))
    return true
  }
  return either(0) && at === tokens.length
}
