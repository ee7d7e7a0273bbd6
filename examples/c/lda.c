/*
 * Latent Dirichlet allocation by collapsed Gibbs sampling (Griffiths and Steyvers, PNAS 2004), with counts that are a
 * little stale (Newman et al., JMLR 2009; Smola and Narayanamurthy, VLDB 2010). The table has a row for each word,
 * the number of its tokens in each topic, and one more row for all words. A worker has the documents whose number
 * modulo the number of workers is its rank, with the topic of each of their tokens. It pulls the words of a block of
 * documents, draws a new topic for each token, and pushes what has changed; no worker is more than one sweep behind
 * another. The sums in the table are exact, even if servers fail: at the end they are compared with the number of
 * tokens.
 *
 *     ./lda DOCWORD [TOPICS [SWEEPS]]             a file "docword" of the UCI collection "bag of words"
 *     paramo run -s 2 -w 2 -- ./lda DOCWORD       worker 0 prints the perplexity, and at the end each topic's words
 */
#include <math.h>
#include <string.h>

#include "example.h"

struct word_count {
    uint64_t word;
    int32_t n;
};
enum { BLOCK = 64, TOPICS_MAX = 4096, SHOWN = 10 };
#define ALPHA 0.1  /* of a document's topics */
#define BETA  0.01 /* of a topic's words */

/* The documents of this worker: tokens of document d are from begins[d] to begins[d + 1]. */
static struct {
    uint32_t *word, *topic;
    size_t tokens, *begins, n;
} docs;
static size_t words, topics = 20, sweeps = 50;
static const char *path;

/* The rows of a block's words, in the order of their keys; the last is the row of all words. */
static struct {
    uint64_t *keys;
    size_t n, *place; /* of a word, from 1; 0: it is not among them */
    int32_t *old, *row;
} part;

static void read_docs(uint32_t rank, uint32_t workers)
{
    size_t all, triples, doc, word, count, cap = 0, last = 0;
    FILE *in = fopen(path, "r");
    if (!in || fscanf(in, "%zu %zu %zu", &all, &words, &triples) != 3 || words == 0 || words > 1u << 28)
        fail("%s: it does not begin with the numbers of documents, words and lines", path);
    docs.begins = memory(all / workers + 3, sizeof *docs.begins);
    for (size_t i = 0; i < triples; i++) {
        if (fscanf(in, "%zu %zu %zu", &doc, &word, &count) != 3 || doc < last || doc < 1 || doc > all ||
            word < 1 || word > words || count > 1u << 20)
            fail("%s:%zu: it is not: document word count, in the order of documents", path, i + 4);
        last = doc;
        if (doc % workers != rank)
            continue;
        for (docs.n = doc / workers + 1; count > 0; count--) {
            if (docs.tokens == cap)
                docs.word = grow(docs.word, cap = 2 * cap + 1024, sizeof *docs.word);
            docs.word[docs.tokens++] = (uint32_t)word - 1;
        }
        docs.begins[docs.n] = docs.tokens;
    }
    fclose(in);
    for (size_t d = 0; d < docs.n; d++) /* documents without words */
        docs.begins[d + 1] = docs.begins[d + 1] < docs.begins[d] ? docs.begins[d] : docs.begins[d + 1];
    docs.topic = memory(docs.tokens, sizeof *docs.topic);
}

static int32_t *row_of(uint32_t word)
{
    return part.row + (part.place[word] - 1) * topics;
}

/* Pulls the rows of the words of documents [first, last). */
static void part_pull(paramo_worker *worker, paramo_table *table, size_t first, size_t last)
{
    for (; part.n > 0; part.n--)
        part.place[part.keys[part.n - 1]] = 0;
    for (size_t i = docs.begins[first]; i < docs.begins[last]; i++)
        if (!part.place[docs.word[i]]++)
            part.keys[part.n++] = docs.word[i];
    part.keys[part.n++] = words;
    sort_keys(part.keys, part.n);
    for (size_t i = 0; i < part.n; i++)
        part.place[part.keys[i]] = i + 1;
    pull(worker, table, part.keys, part.n, part.row, part.n * topics);
    memcpy(part.old, part.row, part.n * topics * sizeof *part.row);
}

static void count(uint32_t *in_doc, size_t token, int32_t change)
{
    row_of(docs.word[token])[docs.topic[token]] += change;
    row_of((uint32_t)words)[docs.topic[token]] += change;
    in_doc[docs.topic[token]] += (uint32_t)change;
}

/* Draws new topics for the tokens of a document. Returns the sum of log p(word | all other tokens). */
static double sample(size_t doc, double *upto, uint32_t *in_doc, int first, uint64_t *state)
{
    double sum = 0, length = (double)(docs.begins[doc + 1] - docs.begins[doc]) - 1 + ALPHA * (double)topics;
    const int32_t *all = row_of((uint32_t)words);
    memset(in_doc, 0, topics * sizeof *in_doc);
    for (size_t i = docs.begins[doc]; i < docs.begins[doc + 1] && !first; i++)
        in_doc[docs.topic[i]]++;
    for (size_t i = docs.begins[doc]; i < docs.begins[doc + 1]; i++) {
        const int32_t *row = row_of(docs.word[i]);
        double total = 0;
        if (!first)
            count(in_doc, i, -1);
        for (size_t k = 0; k < topics; k++)
            upto[k] = total += (in_doc[k] + ALPHA) * (row[k] + BETA) / (all[k] + BETA * (double)words);
        sum += log(total / length);
        size_t k = 0;
        for (double at = draw(state) * total; k + 1 < topics && upto[k] <= at;)
            k++;
        docs.topic[i] = (uint32_t)k;
        count(in_doc, i, 1);
    }
    return sum;
}

/* Collects the words that each topic has most tokens of. */
static int collect(void *arg, const paramo_rows *rows)
{
    struct word_count(*top)[SHOWN] = arg;
    const int32_t *n = rows->vals;
    for (size_t i = 0; i < rows->n * topics; i++) {
        struct word_count next = {rows->keys[i / topics], n[i]};
        for (size_t at = 0; at < SHOWN && next.word < words; at++)
            if (next.n > top[i % topics][at].n) {
                struct word_count down = top[i % topics][at];
                top[i % topics][at] = next;
                next = down;
            }
    }
    return 0;
}

static void show(paramo_worker *worker, paramo_table *table)
{
    struct word_count(*top)[SHOWN] = memory(topics, sizeof *top);
    check(paramo_table_iterate(worker, table, 0, collect, top));
    for (size_t k = 0; k < topics; k++) {
        printf("topic %zu:", k + 1);
        for (size_t i = 0; i < SHOWN && top[k][i].n > 0; i++)
            printf(" %zu", (size_t)top[k][i].word + 1);
        putchar('\n');
    }
}

static void work(paramo_node *node, paramo_worker *worker)
{
    uint32_t rank = paramo_node_rank(node);
    paramo_table *table = adding_table(worker, "tokens", PARAMO_I32, (uint32_t)topics, 0);
    read_docs(rank, paramo_num_workers(node));
    part.keys = memory(words + 1, sizeof *part.keys);
    part.place = memory(words + 1, sizeof *part.place);
    part.row = memory((words + 1) * topics, sizeof *part.row);
    part.old = memory((words + 1) * topics, sizeof *part.old);
    double *upto = memory(topics, sizeof *upto), sums[2] = {0};
    uint32_t *in_doc = memory(topics, sizeof *in_doc);
    uint64_t state = rank;
    for (size_t sweep = 0; sweep <= sweeps; sweep++) {
        sums[0] = 0, sums[1] = (double)docs.tokens;
        for (size_t first = 0, last; first < docs.n; first = last) {
            last = docs.n - first < BLOCK ? docs.n : first + BLOCK;
            part_pull(worker, table, first, last);
            for (size_t d = first; d < last; d++)
                sums[0] += sample(d, upto, in_doc, sweep == 0, &state);
            for (size_t i = 0; i < part.n * topics; i++)
                part.row[i] -= part.old[i];
            push(worker, table, part.keys, part.n, part.row, part.n * topics);
        }
        sum_over_workers(node, "sweep", (int)sweep, sums, 2);
        if (rank == 0)
            printf("sweep %zu: perplexity %.1f\n", sweep, exp(-sums[0] / sums[1]));
    }
    if (rank != 0)
        return;
    int64_t left = (int64_t)sums[1];
    part_pull(worker, table, 0, 0);
    for (size_t k = 0; k < topics; k++)
        left -= row_of((uint32_t)words)[k];
    show(worker, table);
    printf("%.0f tokens, all of them in the table: %s\n", sums[1], left ? "no" : "yes");
    if (left)
        fail("the table has %lld tokens too few", (long long)left);
}

int main(int argc, char **argv)
{
    if (argc > 2)
        topics = strtoul(argv[2], NULL, 10);
    if (argc > 3)
        sweeps = strtoul(argv[3], NULL, 10);
    if (argc < 2 || argc > 4 || topics < 1 || topics > TOPICS_MAX || sweeps < 1 || sweeps > 1u << 20)
        fail("usage: lda DOCWORD [TOPICS [SWEEPS]] (1 to %d topics)", TOPICS_MAX);
    path = argv[1];
    return run(work);
}
