"""The names of all metrics, for the code that exposes them and the code that reads them.

A counter's ends in `_total`, which prometheus-client expects, and takes away where it must.
"""

from __future__ import annotations

from typing import Final

# Of both programs.
READY: Final = "fairlead_ready"
CACHE_AGE: Final = "fairlead_cache_age_seconds"
WATCH_FAILING: Final = "fairlead_watch_failing_seconds"
WATCH_ERRORS: Final = "fairlead_watch_errors_total"
WATCH_RESTARTS: Final = "fairlead_watch_restarts_total"
LISTS: Final = "fairlead_lists_total"
WATCHES: Final = "fairlead_watches_total"
OBJECTS_LEFT_OUT: Final = "fairlead_objects_left_out"
OBJECTS_UNREADABLE: Final = "fairlead_objects_unreadable_total"
CERTIFICATE_EXPIRY: Final = "fairlead_certificate_expiry_timestamp_seconds"

# Of the webhook.
ADMISSION_REQUESTS: Final = "fairlead_admission_requests_total"
ADMISSION_DURATION: Final = "fairlead_admission_duration_seconds"
ADMISSION_IN_FLIGHT: Final = "fairlead_admission_in_flight"
CONNECTIONS: Final = "fairlead_connections"
CONNECTIONS_ENDED: Final = "fairlead_connections_ended_total"
ENGINE_ERRORS: Final = "fairlead_engine_errors_total"
WORKLOAD_WARNINGS: Final = "fairlead_workload_warnings_total"
EVENTS: Final = "fairlead_events_total"
CERTIFICATE_RELOADS: Final = "fairlead_certificate_reload_total"
SELF_HANDSHAKE: Final = "fairlead_self_handshake_verified"
DECISIONS: Final = "fairlead_decisions_total"
POLICY_REJECTIONS: Final = "fairlead_policy_rejections_total"
POLICY_LAST_MATCH: Final = "fairlead_policy_last_match_timestamp_seconds"
AUDITED_DECISIONS: Final = "fairlead_audited_decisions_total"
EXCEPTIONS_APPLIED: Final = "fairlead_exceptions_applied_total"
POLICY_WRITES: Final = "fairlead_policy_writes_judged_total"
UNPLACEABLE: Final = "fairlead_unplaceable_total"
POLICY_SET: Final = "fairlead_policy_set_info"
POLICY_SET_LOADED: Final = "fairlead_policy_set_loaded_timestamp_seconds"
POLICY_SET_ERRORS: Final = "fairlead_policy_set_errors"
POLICY_RELOADS: Final = "fairlead_policy_reload_total"

# Of the controller.
RECONCILES: Final = "fairlead_reconciles_total"
RECONCILE_DURATION: Final = "fairlead_reconcile_duration_seconds"
RUNS: Final = "fairlead_runs"
DEFINITION_OUTDATED: Final = "fairlead_definition_outdated"
RUNS_NOT_UNDERSTOOD: Final = "fairlead_runs_not_understood"
RUN_TRANSITIONS: Final = "fairlead_run_transitions_total"
RUN_USAGE: Final = "fairlead_run_usage_seconds_total"
PODS_LEAVING: Final = "fairlead_pods_on_leaving_nodes"
PODS_CREATED: Final = "fairlead_pods_created_total"
PODS_DELETED: Final = "fairlead_pods_deleted_total"
CREATIONS_REFUSED: Final = "fairlead_creations_refused_total"
API_REQUESTS: Final = "fairlead_api_requests_total"
API_THROTTLED: Final = "fairlead_api_throttled_total"
API_RATE: Final = "fairlead_api_rate"
POLICIES: Final = "fairlead_policies"
LEADER: Final = "fairlead_leader"
QUEUE_DEPTH: Final = "fairlead_queue_depth"
QUEUE_OLDEST: Final = "fairlead_queue_oldest_seconds"
EVENTS_DROPPED: Final = "fairlead_events_dropped_total"
CERTIFICATE_PHASE: Final = "fairlead_certificate_phase"
CERTIFICATE_REPLICAS_BEHIND: Final = "fairlead_certificate_replicas_behind"
CERTIFICATE_WRITES: Final = "fairlead_certificate_writes_total"
CERTIFICATE_ERRORS: Final = "fairlead_certificate_errors_total"
