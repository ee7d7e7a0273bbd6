/* What the public API says of nodes that join a running job. */
#include "unit.h"

#include <stdio.h>

#include "support_cluster.h"

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static void soon(paramo_config *config)
{
    config->heartbeat_ms = 50; /* a node that comes late is one more after two of them */
}

static void a_server_that_joins_is_seen(void **state)
{
    (void)state;
    struct cluster c;
    uint32_t ids[8];
    paramo_worker *w = NULL;
    paramo_table *t = NULL;
    cluster_start_with(&c, 1, 1, soon);
    paramo_node *node = c.workers[0].node;
    assert_int_equal(paramo_node_ids(node, PARAMO_GROUP_SERVERS, ids, 8), 1);
    cluster_add_server(&c);
    assert_int_equal(paramo_node_id(c.servers[1].node), PARAMO_ID_SERVER(1));
    /* A table is made by a view that is newer. */
    ok(paramo_worker_open(node, 0, &w));
    paramo_table_options o;
    paramo_table_options_init(&o);
    ok(paramo_table_open(w, "t", &o, &t));
    assert_int_equal(paramo_node_ids(node, PARAMO_GROUP_SERVERS, ids, 8), 2);
    assert_int_equal(ids[0], PARAMO_ID_SERVER(0));
    assert_int_equal(ids[1], PARAMO_ID_SERVER(1));
    assert_int_equal(paramo_node_ids(node, PARAMO_ID_SERVER(1), NULL, 0), 1);
    assert_int_equal(paramo_node_ids(node, PARAMO_GROUP_ALL, NULL, 0), 4);
    assert_int_equal(paramo_num_servers(node), 1);
    paramo_table_close(t);
    paramo_worker_close(w);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_server_that_joins_is_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
