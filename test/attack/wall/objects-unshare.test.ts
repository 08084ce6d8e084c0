import { objectsHold } from './objects-users.js'

objectsHold('unshare')
