package wire

// codes is the one table of codes; nothing else maps a code to anything.
//
// A limit_exceeded is 409 and not 413 or 507: it is decided by the state of the
// store (its queue is full, its value limit was lowered, its numbers are used
// up), the same request may pass later, and no node ran out of anything. A body
// that no setting would ever accept is too_large.
var codes = []CodeInfo{
	{
		CodeInvalidRequest, 400, ExitUsage, "Invalid request",
		"The request breaks a rule of the API, and `field` names the part that does. Nothing was changed. Correct that part; the same request will always get this answer.",
	},
	{
		CodeUnauthenticated, 401, ExitServer, "Not authenticated",
		"The request carries no credential, or one this cluster does not know. Nothing was changed. Send a valid credential.",
	},
	{
		CodeForbidden, 403, ExitServer, "Forbidden",
		"The caller may not do this, or the request was sent by a web page of another site. Nothing was changed. Ask an administrator for the right; from a browser, use pages this node serves itself.",
	},
	{
		CodeKeyNotFound, 404, ExitNotFound, "Key not found",
		"The key does not exist, or was deleted. A delete that gets this answer changed nothing, and its request ID keeps it. Check the spelling of the key; GET with ?meta shows what a deleted key was.",
	},
	{
		CodeLockNotFound, 404, ExitNotFound, "Lock not found",
		"Nothing was ever locked or fenced under this resource. Check the spelling; a lock on a prefix ends in a slash and a lock on a key does not.",
	},
	{
		CodeMemberNotFound, 404, ExitNotFound, "Member not found",
		"The cluster has no member of this name. Nothing was changed. GET /v1/cluster lists the members.",
	},
	{
		CodeRequestNotFound, 404, ExitNotFound, "Request not found",
		"No record of this request ID exists in this scope: it never took effect, or its record is older than the retention. It may still be on its way. Seal it (POST /v1/seal) to make sure that it never takes effect.",
	},
	{
		CodeRouteNotFound, 404, ExitUsage, "No such route",
		"This version of the server has nothing at this path. Nothing was changed. Check the path and the server's version.",
	},
	{
		CodeMethodNotAllowed, 405, ExitUsage, "Method not allowed",
		"The path exists and does not take this method. Nothing was changed. The Allow header lists the methods it takes.",
	},
	{
		CodeClusterConflict, 409, ExitServer, "Cluster conflict",
		"The change of members contradicts the cluster as it is: a name or address already taken, another change under way, or the last voter to be removed. Nothing was changed. Look at GET /v1/cluster and try again.",
	},
	{
		CodeExternallyFenced, 409, ExitStaleOwner, "Fenced from outside",
		"Writes to this resource carry tokens of another issuer, so a token of this store might lie below them. No lock was granted. Acquire with adopt to let this store issue tokens above those from now on.",
	},
	{
		CodeLimitExceeded, 409, ExitServer, "Limit exceeded",
		"The store is at a limit, named by `limit` with its value in `bound`. Nothing was changed. Ask for less, wait until others have left, or have an administrator raise the limit.",
	},
	{
		CodeNotHolder, 409, ExitStaleOwner, "Not the holder",
		"The lease has ended or was never this caller's; `holder` says who holds the lock now. Nothing was changed. Stop the work done under the lease and acquire again, with a new request ID.",
	},
	{
		CodeRequestSealed, 409, ExitServer, "Request sealed",
		"Somebody sealed this request ID, so that it can never take effect. It did not and will not. If the operation is still wanted, send it under a new request ID.",
	},
	{
		CodeSequenceGap, 409, ExitRevisionMismatch, "Sequence gap",
		"The sequence number skips at least one; `expectedSequence` would be next. Nothing was changed. Send the missing writes first.",
	},
	{
		CodeSequencePassed, 409, ExitRevisionMismatch, "Sequence passed",
		"A later sequence number of this token was already applied; this one may have been applied before it. Nothing was changed. Read the key to see its value.",
	},
	{
		CodeStaleOwner, 409, ExitStaleOwner, "Stale owner",
		"A newer token is enforced on this resource: somebody else was given the lock after the caller, and `enforcedBy` says who and when. The write was refused and nothing was changed. Stop the old work. If `applied` is there, this request had already taken effect before. Acquire the lock again and read before writing.",
	},
	{
		CodeTokenRetired, 409, ExitStaleOwner, "Token retired",
		"The token was given up by a release or a revoke, so nothing may be written with it any more. Nothing was changed. Acquire the lock again.",
	},
	{
		CodeCompacted, 410, ExitNotFound, "No longer kept",
		"The store no longer keeps the key's value as of that revision. GET with ?meta lists the revisions it keeps.",
	},
	{
		CodeRemovedFromCluster, 410, ExitServer, "Removed from the cluster",
		"This node was removed from its cluster and answers for nothing. Nothing was changed. Use another node; take this one out of the addresses.",
	},
	{
		CodeRequestExpired, 410, ExitServer, "Request expired",
		"The request was first sent below `horizon`, where records of requests have been dropped, so the store cannot tell whether it took effect then. It was not applied now. Read the current state, and if the operation is still wanted send it under a new request ID.",
	},
	{
		CodeRevisionMismatch, 412, ExitRevisionMismatch, "Revision mismatch",
		"The key is not in the state the precondition asks for; `currentRevision` is its revision, 0 if it does not exist. Nothing was changed, and the request ID keeps this answer. Read the key, decide anew, and send the new attempt under a new request ID.",
	},
	{
		CodeTooLarge, 413, ExitUsage, "Too large",
		"The body is longer than `bound` bytes. Nothing of it was stored. Store large data elsewhere and write a pointer to it, or have an administrator raise the limit.",
	},
	{
		CodeUnsupportedMedia, 415, ExitUsage, "Unsupported media",
		"The body is encoded or of a type this route does not take. Nothing was changed. Send it without Content-Encoding; a route that takes JSON wants Content-Type: application/json.",
	},
	{
		CodeWrongHost, 421, ExitServer, "Wrong host",
		"The Host header names none of this cluster's addresses, as in a DNS rebinding attack. Nothing was changed. Use the node's advertised address, or start the node with this name as its advertised address.",
	},
	{
		CodeRequestMismatch, 422, ExitUsage, "Request mismatch",
		"This request ID was used for another operation: other key, precondition, content type or value. Nothing was changed. A request ID stands for one operation; use a new one.",
	},
	{
		CodeTokenNotIssued, 422, ExitStaleOwner, "Token not issued",
		"This store never issued the token for this resource or a prefix that covers it. Nothing was changed, and the token fences nothing. Send the token of the lock that covers this key.",
	},
	{
		CodeLockHeld, 423, ExitLockHeld, "Lock held",
		"Somebody holds the lock or one that overlaps it, or waits for it; `holder`, `key` and `remainingMs` say who, where and for how long at most. No lock was granted; a caller that waited has left the queue. Try again later, or wait (longer) in the queue with waitMs.",
	},
	{
		CodeTokenRequired, 428, ExitStaleOwner, "Token required",
		"The resource is fenced, so a write must carry the fencing token of its lock, and this one carries none. Nothing was changed. Acquire the lock and send its token in Fence-Token.",
	},
	{
		CodeTooManyRequests, 429, ExitServer, "Too many requests",
		"The caller sends faster than it may. Nothing was changed. Wait as long as Retry-After says.",
	},
	{
		CodeInternal, 500, ExitServer, "Internal error",
		"The node met a fault of its own and wrote it to its log. `outcome` says whether the change can have happened.",
	},
	{
		CodeNoLeader, 503, ExitServer, "No leader",
		"The cluster has no leader this node could reach. Nothing was changed by this request. Send it again, under the same request ID, to any node; if it goes on, see whether a majority of the members runs.",
	},
	{
		CodeNotReady, 503, ExitServer, "Not ready",
		"The node is starting, stopping or not yet caught up. Nothing was changed. Send the request again shortly, or to another node.",
	},
	{
		CodeOverloaded, 503, ExitServer, "Overloaded",
		"The node has as much work waiting as it accepts. Nothing was changed. Send the request again after Retry-After.",
	},
	{
		CodeRestoring, 503, ExitServer, "Restoring",
		"The cluster is being restored from a backup and takes no writes until that is done. Nothing was changed. Send the request again after Retry-After.",
	},
	{
		CodeOutcomeUnknown, 504, ExitUnknown, "Outcome unknown",
		"The request was sent to the cluster, and the answer did not come. It may have taken effect, or may yet. Send it again with the same request ID: it takes effect at most once and the answer will be certain. Or ask GET /v1/requests, or seal it with POST /v1/seal before doing anything that must not happen twice.",
	},
	{
		CodeStorageLow, 507, ExitServer, "Storage low",
		"A node's disk is nearly full, so the cluster takes no writes. Nothing was changed. Make space; reads and releases still work.",
	},
}
