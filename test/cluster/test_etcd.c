#include "unit.h"

#include <string.h>

#include "cluster/meta/etcd.h"

static struct writer bytes(const char *text)
{
    struct writer w = {0};
    if (*text)
        write_bytes(&w, text, strlen(text));
    return w;
}

/* The bytes that are sent: etcd's gateway names fields as its protocol does, in lower case or camel. */
static void what_is_asked(void **state)
{
    (void)state;
    struct etcd_txn txn = {0};
    struct writer body = {0};
    etcd_compare(&txn, "a", 7);
    etcd_compare(&txn, "bc", 0);
    etcd_put(&txn.then, "a", "\0\xff", 2, 0);
    etcd_put(&txn.then, "bc", "", 0, UINT64_C(7587848943239472129));
    etcd_range(&txn.then, "a", NULL, 0);
    etcd_range(&txn.otherwise, "a", "b", 8);
    etcd_erase(&txn.otherwise, "a", NULL);
    etcd_erase(&txn.otherwise, "a", "b");
    etcd_txn_write(&txn, &body);
    write_u8(&body, 0);
    assert_string_equal(
        (char *)body.data,
        "{\"compare\":[{\"key\":\"YQ==\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"7\"},"
        "{\"key\":\"YmM=\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"0\"}],"
        "\"success\":[{\"request_put\":{\"key\":\"YQ==\",\"value\":\"AP8=\"}},"
        "{\"request_put\":{\"key\":\"YmM=\",\"value\":\"\",\"lease\":\"7587848943239472129\"}},"
        "{\"request_range\":{\"key\":\"YQ==\"}}],"
        "\"failure\":[{\"request_range\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\",\"limit\":\"8\"}},"
        "{\"request_delete_range\":{\"key\":\"YQ==\"}},"
        "{\"request_delete_range\":{\"key\":\"YQ==\",\"range_end\":\"Yg==\"}}]}");
    writer_fini(&body);
    body = (struct writer){0};
    etcd_txn_write(&txn, &body); /* the lists are empty now */
    etcd_grant_write(5, &body);
    etcd_lease_write(12, &body);
    write_u8(&body, 0);
    assert_string_equal((char *)body.data,
                        "{\"compare\":[],\"success\":[],\"failure\":[]}{\"TTL\":\"5\"}{\"ID\":\"12\"}");
    writer_fini(&body);
}

static void a_transaction_is_read(void **state)
{
    (void)state;
    struct writer json = bytes(
        "{\"header\":{\"cluster_id\":\"14841639068965178418\",\"revision\":\"9\",\"raft_term\":\"2\"},"
        "\"succeeded\":true,\"responses\":[{\"response_put\":{\"header\":{\"revision\":\"9\"}}},"
        "{\"response_range\":{\"header\":{\"revision\":\"9\"},\"kvs\":[{\"key\":\"YQ==\",\"create_revision\":"
        "\"3\",\"mod_revision\":\"8\",\"version\":\"2\",\"value\":\"AP8=\"},{\"key\":\"YmM=\",\"mod_"
        "revision\":"
        "\"9223372036854775807\"}],\"count\":\"2\"}},{\"response_range\":{\"header\":{}}}]}");
    struct etcd_answer answer;
    assert_int_equal(etcd_txn_read(&json, &answer), PARAMO_OK);
    assert_true(answer.succeeded);
    assert_int_equal(answer.revision, 9);
    assert_int_equal(answer.count, 2);
    const struct etcd_kv *a = etcd_find(&answer, "a"), *bc = etcd_find(&answer, "bc");
    assert_ptr_equal(a, &answer.kv[0]);
    assert_int_equal(a->modified, 8);
    assert_int_equal(a->value.len, 2);
    assert_memory_equal(a->value.data, "\0\xff", 2);
    assert_int_equal(bc->modified, INT64_MAX);
    assert_int_equal(bc->value.len, 0);
    assert_null(etcd_find(&answer, "b"));
    etcd_answer_fini(&answer);
    writer_fini(&json);
    json = bytes("{\"header\":{\"revision\":4}}"); /* numbers may come as numbers, too */
    assert_int_equal(etcd_txn_read(&json, &answer), PARAMO_OK);
    assert_false(answer.succeeded);
    assert_int_equal(answer.revision, 4);
    etcd_answer_fini(&answer);
    writer_fini(&json);
}

static void what_is_none_is_refused(void **state)
{
    (void)state;
#define KVS(kv) "{\"header\":{\"revision\":\"9\"},\"responses\":[{\"response_range\":{\"kvs\":[" kv "]}}]}"
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "7",
        "{}",
        "{\"header\":{}}",
        "{\"header\":{\"revision\":\"0\"}}",
        "{\"header\":{\"revision\":\"-1\"}}",
        "{\"header\":{\"revision\":-1}}",
        "{\"header\":{\"revision\":\"9x\"}}",
        "{\"header\":{\"revision\":\" 9\"}}",
        "{\"header\":{\"revision\":\"18446744073709551617\"}}",
        "{\"header\":{\"revision\":\"9\"},\"succeeded\":\"true\"}",
        "{\"header\":{\"revision\":\"9\"},\"responses\":{}}",
        "{\"header\":{\"revision\":\"9\"},\"responses\":[{\"response_range\":7}]}",
        "{\"header\":{\"revision\":\"9\"},\"responses\":[{\"response_range\":{\"kvs\":{\"a\":1}}}]}",
        KVS("7"),
        KVS("{}"),
        KVS("{\"key\":\"YQ==\"}"),
        KVS("{\"key\":\"YQ\",\"mod_revision\":\"1\"}"),
        KVS("{\"key\":\"\",\"mod_revision\":\"1\"}"),
        KVS("{\"key\":\"AA==\",\"mod_revision\":\"1\"}"),
        KVS("{\"key\":\"YQ==\",\"mod_revision\":\"1\",\"value\":7}"),
        KVS("{\"key\":\"YQ==\",\"mod_revision\":\"1\",\"value\":\"?\"}")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct writer json = bytes(bad[i]);
        struct etcd_answer answer;
        assert_int_equal(etcd_txn_read(&json, &answer), PARAMO_E_PROTOCOL);
        writer_fini(&json);
    }
    /* A key that is too long, and more of them than an answer may have. */
    struct writer json =
        bytes("{\"header\":{\"revision\":\"9\"},\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"");
    for (int i = 0; i < ETCD_KEY_MAX / 3 + 1; i++)
        write_bytes(&json, "YWFh", 4);
    struct writer rest = bytes("\",\"mod_revision\":\"1\"}]}}]}"), many = {0};
    write_bytes(&json, rest.data, rest.len);
    struct etcd_answer answer;
    assert_int_equal(etcd_txn_read(&json, &answer), PARAMO_E_PROTOCOL);
    writer_fini(&json);
    writer_fini(&rest);
    many = bytes("{\"header\":{\"revision\":\"9\"},\"responses\":[{\"response_range\":{\"kvs\":[");
    for (int i = 0; i <= ETCD_KVS_MAX; i++) {
        struct writer one = bytes(i ? ",{\"key\":\"YQ==\",\"mod_revision\":\"1\"}"
                                    : "{\"key\":\"YQ==\",\"mod_revision\":\"1\"}");
        write_bytes(&many, one.data, one.len);
        writer_fini(&one);
    }
    write_bytes(&many, "]}}]}", 5);
    assert_int_equal(etcd_txn_read(&many, &answer), PARAMO_E_PROTOCOL);
    writer_fini(&many);
}

static void leases_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        paramo_err err;
        uint64_t lease;
        uint32_t ttl_s;
    } cases[] = {{"{\"header\":{},\"ID\":\"7587848943239472129\",\"TTL\":\"5\"}", PARAMO_OK,
                  UINT64_C(7587848943239472129), 5},
                 {"{\"result\":{\"ID\":\"12\",\"TTL\":\"5\"}}", PARAMO_OK, 12, 5},
                 {"{\"result\":{\"ID\":\"12\"}}", PARAMO_OK, 12, 0},
                 {"{\"result\":7}", PARAMO_E_PROTOCOL, 0, 0},
                 {"{\"TTL\":\"5\"}", PARAMO_E_PROTOCOL, 0, 0},
                 {"{\"ID\":\"1\",\"TTL\":\"4294967296\"}", PARAMO_E_PROTOCOL, 0, 0},
                 {"no", PARAMO_E_PROTOCOL, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct writer json = bytes(cases[i].json);
        uint64_t lease;
        uint32_t ttl_s;
        assert_int_equal(etcd_lease_read(&json, &lease, &ttl_s), cases[i].err);
        if (!cases[i].err) {
            assert_int_equal(lease, cases[i].lease);
            assert_int_equal(ttl_s, cases[i].ttl_s);
        }
        writer_fini(&json);
    }
}

static void errors_are_told(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"{\"error\":\"etcdserver: no leader\",\"code\":14,\"message\":\"other\"}", "etcdserver: no leader"},
        {"{\"code\":14,\"message\":\"gone\\nand\"}", "gone and"},
        {"<html>\n404", "<html> 404"},
        {"", ""},
        {"{\"error\":7}", "{\"error\":7}"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct writer json = bytes(pairs[i][0]);
        char text[40], cut[5];
        etcd_error_text(&json, text, sizeof text);
        assert_string_equal(text, pairs[i][1]);
        etcd_error_text(&json, cut, sizeof cut);
        assert_true(strlen(cut) < sizeof cut && strncmp(cut, text, strlen(cut)) == 0);
        writer_fini(&json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked),           cmocka_unit_test(a_transaction_is_read),
        cmocka_unit_test(what_is_none_is_refused), cmocka_unit_test(leases_are_read),
        cmocka_unit_test(errors_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
